"""The report as one HTML file that needs nothing else."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from penstock.bench.peers import PEERS
from penstock.bench.report import paper, tables
from penstock.bench.report.figures import Drawn
from penstock.bench.report.html import html_table, inline
from penstock.bench.report.questions import Answer
from penstock.bench.report.results import Results
from penstock.bench.report.targets import MET, MISSED, UNKNOWN, Target
from penstock.bench.schedule import Cell

_METHOD = (
    "Rates are messages per second: T_mean of equation 9 (the mean over forks of the mean over iterations), ± the 99 % "
    "confidence interval of equation 10 with Student's t over forks, or over iterations where there is one fork. "
    "Every answer was checked on a few messages before anything was timed. A fork is a fresh process; in a quick run "
    "all workloads of a peer share one. Where each message is handled many times there are fewer of them. Ratios to "
    "other systems and targets are those of medians; answers, speed-ups and sizes of messages have means. Point at a "
    "number to see its median and spread, or why there is none."
)


def page(results: Results, targets: Sequence[Target], answers: Sequence[Answer], figures: Sequence[Drawn]) -> str:
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    sections = [
        _head(results),
        _targets(targets),
        _section("questions", "Questions", *map(_answer, answers)),
        _section("table-6", "EIPBench table 6", html_table(tables.beside_paper(results, paper.TABLE_6, paper.NOTE_6))),
        _section("table-7", "EIPBench table 7", html_table(tables.beside_paper(results, paper.TABLE_7, paper.NOTE_7))),
        _section("workloads", "All workloads", *_workloads(results)),
        _cores(results),
        _spellings(results),
        _section("figures", "Figures", *map(_figure, figures)),
        _section("phases", "Phases", html_table(tables.phases(results))),
        _absences(results),
        _section("method", "How this was measured", f"<p>{_METHOD}</p>", _facts(results)),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>EIPBench {escape(results.run.name)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(filter(None, sections))
        + "\n</main>\n</body>\n</html>\n"
    )


def _head(results: Results) -> str:
    places = ("targets", "questions", "table-6", "table-7", "workloads", "figures", "phases", "absences", "method")
    links = "".join(f'<a href="#{place}">{place.replace("-", " ")}</a>' for place in places)
    facts = results.run.facts
    started = time.strftime("%Y-%m-%d %H:%M", time.localtime(facts["started"]))
    quick = "a quick run: its numbers are rough; " if results.run.settings.quick else ""
    return (
        f"<h1>EIPBench on Penstock and its peers</h1>\n"
        f'<p class="faint">Run {escape(results.run.name)}, started {started}; {quick}{escape(facts["machine"])}</p>\n'
        f"<nav>{links}</nav>"
    )


def _section(place: str, title: str, *parts: str) -> str:
    return f'<section id="{place}">\n<h2>{escape(title)}</h2>\n' + "\n".join(parts) + "\n</section>"


def _targets(targets: Sequence[Target]) -> str:
    count = Counter(target.status for target in targets)
    scores = "".join(f'<div class="{name}"><b>{count[name]}</b>{name}</div>' for name in (MET, MISSED, UNKNOWN))
    return _section("targets", "Targets", f'<div class="score">{scores}</div>', html_table(tables.wanted(targets)))


def _answer(answer: Answer) -> str:
    sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in answer.sentences)
    return (
        f"<h3>{answer.name}: {escape(answer.question)}</h3>\n<ul>{sentences}</ul>\n"
        f'<p class="faint">{escape(answer.paper)}</p>'
    )


def _workloads(results: Results) -> Iterable[str]:
    yield '<p class="faint">Below each rate: its confidence interval, and its part of the baseline of its peer.</p>'
    for family in tables.families(results):
        yield f"<h3>{escape(family)}</h3>"
        yield html_table(tables.everything(results, family))
    differing = results.differing_counts()
    if differing:
        yield "<p>Peers that were given the same messages and delivered different numbers of them:</p>"
        yield _list(differing)


def _cores(results: Results) -> str:
    table = tables.cores(results)
    if table is None:
        return ""
    few, many = results.run.settings.cores[0], results.run.settings.cores[-1]
    return _section("cores", f"From {few} to {many} cores", html_table(table))


def _spellings(results: Results) -> str:
    table = tables.spellings(results)
    if table is None:
        return ""
    return _section("spellings", "JSON with spaces against compact JSON", html_table(table))


def _figure(drawn: Drawn) -> str:
    plot = drawn.plot
    gaps = f"<br>No result: {escape('; '.join(drawn.gaps))}." if drawn.gaps else ""
    if drawn.light is None or drawn.dark is None:
        return (
            f'<figure class="empty" id="{plot.name}"><h3>{escape(plot.title)}</h3>\n'
            f"<figcaption>missing: this run measured nothing of it. {escape(plot.caption)}</figcaption></figure>"
        )
    return (
        f'<figure id="{plot.name}"><h3>{escape(plot.title)}</h3>\n<picture>'
        f'<source media="(prefers-color-scheme: dark)" srcset="{inline(drawn.dark)}">'
        f'<img alt="{escape(plot.caption)}" src="{inline(drawn.light)}"></picture>\n'
        f"<figcaption>{escape(plot.caption)}{gaps}</figcaption></figure>"
    )


def _absences(results: Results) -> str:
    """Every workload and cell without a number, with the whole reason."""
    reasons: dict[tuple[str, str, str], list[str]] = {}
    cells = [results.cell(name) for name in results.run.settings.workloads]
    absent = [(peer, cell) for peer in results.peers for cell in cells if results.throughput(peer, cell) is None]
    absent += [key for key in results.failures if results.throughput(*key) is None and key not in absent]
    for peer, cell in absent:
        found = results.absent(peer, cell)
        reasons.setdefault((PEERS[peer].title, found.status, found.reason), []).append(_short(results, cell))
    lines = [f"{peer}: {', '.join(names)}: {status}: {why}" for (peer, status, why), names in reasons.items()]
    text = _list(lines) if lines else "<p>Nothing.</p>"
    return _section("absences", "What is missing", text)


def _short(results: Results, cell: Cell) -> str:
    return cell.workload if cell == results.cell(cell.workload) else str(cell)


def _facts(results: Results) -> str:
    run, settings = results.run, results.run.settings
    facts = {
        "machine": run.facts["machine"],
        "versions": run.facts["versions"],
        "commit": run.facts["commit"] or "unknown",
        "cores": ", ".join(map(str, settings.cores)),
        "forks": str(settings.forks),
        "warm-up": f"at least {settings.warmup} iterations and {settings.warmup_seconds:g} s",
        "iterations": str(settings.iterations),
        "messages": f"{settings.messages:,} orders, or about as many bytes of other models",
        "JSON": ", ".join(settings.spellings),
        "samples": f"{len(results.samples):,} (samples.jsonl beside this report; {run.path})",
    }
    return "<dl>" + "".join(f"<dt>{escape(k)}</dt><dd>{escape(str(v))}</dd>" for k, v in facts.items()) + "</dl>"


def _list(lines: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"
