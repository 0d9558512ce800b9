"""A small picture for each endpoint; the pictures of patterns are in `patterns/`."""

from __future__ import annotations

from penstock.patterns.drawing import line

FILES = '<path d="M20,6 H38 L46,14 V38 H20 Z"/><path d="M38,6 V14 H46"/>' + "".join(
    line((25, y), (41, y)) for y in (20, 26, 32)
)
TABLE = '<path d="M14,12 a18,6 0 0 1 36,0 V33 a18,6 0 0 1 -36,0 Z"/><path d="M14,12 a18,6 0 0 0 36,0"/>'
MEMORY = '<rect x="20" y="11" width="24" height="22"/>' + "".join(
    line((x, top), (x, top + 5)) for x in (26, 32, 38) for top in (6, 33)
)
CONSOLE = ('<rect x="13" y="8" width="38" height="28" rx="3"/>' + line((20, 16), (26, 21), (20, 26))
           + line((30, 28), (40, 28)))  # fmt: skip
VOID = '<circle cx="32" cy="22" r="13"/><line x1="23" y1="31" x2="41" y2="13"/>'
RATE = '<circle cx="32" cy="22" r="14"/>' + line((32, 13), (32, 22), (39, 26))
DEAD = ('<path d="M12,10 H44 V34 H12 Z"/><polyline points="12,11 28,24 44,11"/>'
        '<path d="M44,24 l10,10 m0,-10 l-10,10" class="cross"/>')  # fmt: skip

ENDPOINTS = {
    "files": FILES, "parquet": TABLE, "table": TABLE, "memory": MEMORY,
    "console": CONSOLE, "void": VOID, "rate": RATE, "dataframe": TABLE,
}  # fmt: skip
