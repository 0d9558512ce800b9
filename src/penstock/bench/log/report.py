"""What a run has shown: on the terminal, and as a page that needs nothing else."""

from __future__ import annotations

import time
from html import escape
from pathlib import Path

from rich.console import Console
from rich.table import Table as RichTable

from penstock.bench import report as eipbench
from penstock.bench.log.peers import PEERS
from penstock.bench.log.plots import Drawn, draw
from penstock.bench.log.samples import Samples
from penstock.bench.log.tables import every_table
from penstock.bench.report.html import html_table, inline
from penstock.bench.report.tables import HEAD, TEXT, Table


def show(samples: Samples, console: Console) -> None:
    for title, table in every_table(samples):
        shown = RichTable(title=title, title_justify="left", caption=table.note or None, caption_justify="left")
        for name, kind in zip(table.header, _kinds(table), strict=True):
            shown.add_column(name, justify="left" if kind in (HEAD, TEXT) else "right")
        for row in table.rows:
            # What stands small below a name is for the page; below a number it is a number.
            shown.add_row(*(field.text if field.kind == HEAD or not field.small else f"{field.text} / {field.small}"
                            for field in row))  # fmt: skip
        console.print(shown)


def _kinds(table: Table) -> list[str]:
    return [field.kind for field in table.rows[0]]


def write_page(samples: Samples) -> Path:
    """The page and the pictures beside the samples."""
    drawn = draw(samples, samples.path.parent)
    path = samples.path.parent / "report.html"
    path.write_text(page(samples, drawn), encoding="utf-8")
    return path


def page(samples: Samples, drawn: list[Drawn]) -> str:
    style = Path(eipbench.__file__).with_name("page.css").read_text(encoding="utf-8")
    tables = "\n".join(f"<section>\n<h2>{escape(title)}</h2>\n{html_table(table)}\n</section>"
                       for title, table in every_table(samples))  # fmt: skip
    figures = "\n".join(map(_figure, drawn))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>The speed of the message log</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>The speed of the message log</h1>\n{_facts(samples)}\n{tables}\n{figures}\n</main>\n</body>\n</html>\n"
    )


def _facts(samples: Samples) -> str:
    if not samples.all:
        return ""
    first = samples.all[0]
    facts = {
        "machine": first.machine,
        "versions": first.versions,
        "commit": first.commit or "unknown",
        "started": time.strftime("%Y-%m-%d %H:%M", time.localtime(first.time)),
        "samples": f"{len(samples.all):,} in {samples.path.name}, beside this page",
    }
    for name in PEERS:
        known = next((one.version for one in samples.matching(side=name) if one.version), None)
        if known:
            facts[PEERS[name].title] = known
    return "<dl>" + "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items()) + "</dl>"


def _figure(drawn: Drawn) -> str:
    plot = drawn.plot
    return (
        f'<figure id="{plot.name}"><h2>{escape(plot.title)}</h2>\n<picture>'
        f'<source media="(prefers-color-scheme: dark)" srcset="{inline(drawn.dark)}">'
        f'<img alt="{escape(plot.caption)}" src="{inline(drawn.light)}"></picture>\n'
        f"<figcaption>{escape(plot.caption)}</figcaption></figure>"
    )
