"""Pieces of a page that both reports are made of."""

from __future__ import annotations

import base64
from html import escape

from penstock.bench.report.tables import HEAD, Field, Table


def inline(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def html_table(table: Table) -> str:
    header = "".join(f"<th>{escape(text)}</th>" for text in table.header)
    rows = "\n".join("<tr>" + "".join(map(_field, row)) + "</tr>" for row in table.rows)
    note = f'\n<p class="note">{escape(table.note)}</p>' if table.note else ""
    body = f"<thead><tr>{header}</tr></thead>\n<tbody>\n{rows}\n</tbody>"
    return f'<div class="scroll"><table>\n{body}\n</table></div>{note}'


def _field(field: Field) -> str:
    tag = "th" if field.kind == HEAD else "td"
    hint = f' title="{escape(field.hint)}"' if field.hint else ""
    small = f"<small>{escape(field.small)}</small>" if field.small else ""
    return f'<{tag} class="{field.kind}"{hint}>{escape(field.text)}{small}</{tag}>'
