"""A small picture per pattern, after the icons of the EIP book; drawn on a field of 64 by 44."""

from __future__ import annotations

WIDTH, HEIGHT = 64, 44


def _line(*points: tuple[float, float]) -> str:
    return f'<polyline points="{" ".join(f"{x},{y}" for x, y in points)}"/>'


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    return f'<line x1="{start[0]}" y1="{start[1]}" x2="{end[0]}" y2="{end[1]}" marker-end="url(#small)"/>'


def _square(x: float, y: float, size: float, filled: bool = False) -> str:
    return f'<rect x="{x}" y="{y}" width="{size}" height="{size}"{_FILLED if filled else ""}/>'


def _dot(x: float, y: float, radius: float = 3) -> str:
    return f'<circle cx="{x}" cy="{y}" r="{radius}"{_FILLED}/>'


def _letters(text: str) -> str:
    return f'<text x="32" y="28" text-anchor="middle" class="sign">{text}</text>'


_FILLED = ' class="full"'
_ROUTER = (_line((8, 22), (22, 22)) + _dot(24, 22) + _line((26, 21), (42, 11)) + _arrow((42, 11), (55, 11))
           + '<polyline points="42,33 55,33" class="faint"/>' + _dot(42, 11, 2) + _dot(42, 33, 2))  # fmt: skip
_FUNNEL = '<path d="M18,9 H46 L36,22 V35 L28,31 V22 Z"/>'
_SPLIT = (_square(9, 15, 14, filled=True) + _arrow((27, 22), (39, 22))
          + "".join(_square(45, y, 8) for y in (5, 18, 31)))  # fmt: skip
_AGGREGATE = ("".join(_square(10, y, 8) for y in (5, 18, 31)) + _arrow((23, 22), (35, 22))
              + _square(40, 15, 14, filled=True))  # fmt: skip
_TRANSLATE = '<path d="M14,8 V36 L32,22 Z"/><path d="M50,8 V36 L32,22 Z" class="full"/>'
_ENRICH = (_square(11, 17, 10) + _arrow((25, 22), (35, 22)) + _square(40, 13, 10)
           + '<rect x="40" y="23" width="10" height="8" class="full"/>')  # fmt: skip
_REDUCE = (_square(11, 13, 10) + '<rect x="11" y="23" width="10" height="8" class="full"/>'
           + _arrow((25, 22), (36, 22)) + _square(42, 17, 10))  # fmt: skip
_TAP = _arrow((8, 15), (56, 15)) + _dot(32, 15, 4) + _arrow((32, 19), (32, 37))
_JOIN = (_line((8, 11), (22, 11), (34, 22)) + _line((8, 33), (22, 33), (34, 22)) + _dot(34, 22)
         + _arrow((36, 22), (55, 22)))  # fmt: skip
_MULTICAST = _line((8, 22), (24, 22)) + "".join(_arrow((24, 22), (53, y)) for y in (9, 22, 35)) + _dot(24, 22)
_RECIPIENTS = ('<rect x="10" y="8" width="18" height="28"/>' + "".join(_line((14, y), (24, y)) for y in (15, 22, 29))
               + "".join(_arrow((32, y), (53, y)) for y in (15, 29)))  # fmt: skip
_BALANCE = (_line((6, 22), (16, 22)) + '<path d="M31,15 A9,9 0 1 0 34,23" marker-end="url(#small)"/>'
            + "".join(_arrow((39, y), (55, y)) for y in (12, 22, 32)))  # fmt: skip
_SEQUENCE = "".join(_square(x, 30 - size, size, filled=True) for x, size in ((12, 6), (22, 10), (36, 15)))
_ONCE = '<circle cx="32" cy="22" r="13"/>' + _letters("1")
_RETRY = '<path d="M45,14 A15,15 0 1 0 47,25" marker-end="url(#small)"/>'

FILES = '<path d="M20,6 H38 L46,14 V38 H20 Z"/><path d="M38,6 V14 H46"/>' + "".join(
    _line((25, y), (41, y)) for y in (20, 26, 32)
)
TABLE = '<path d="M14,12 a18,6 0 0 1 36,0 V33 a18,6 0 0 1 -36,0 Z"/><path d="M14,12 a18,6 0 0 0 36,0"/>'
MEMORY = '<rect x="20" y="11" width="24" height="22"/>' + "".join(
    _line((x, top), (x, top + 5)) for x in (26, 32, 38) for top in (6, 33)
)
CONSOLE = ('<rect x="13" y="8" width="38" height="28" rx="3"/>' + _line((20, 16), (26, 21), (20, 26))
           + _line((30, 28), (40, 28)))  # fmt: skip
VOID = '<circle cx="32" cy="22" r="13"/><line x1="23" y1="31" x2="41" y2="13"/>'
RATE = '<circle cx="32" cy="22" r="14"/>' + _line((32, 13), (32, 22), (39, 26))
DEAD = ('<path d="M12,10 H44 V34 H12 Z"/><polyline points="12,11 28,24 44,11"/>'
        '<path d="M44,24 l10,10 m0,-10 l-10,10" class="cross"/>')  # fmt: skip

PATTERNS = {
    "content-based router": _ROUTER,
    "message filter": _FUNNEL,
    "load balancer": _BALANCE,
    "recipient list": _RECIPIENTS,
    "multicast": _MULTICAST,
    "join router": _JOIN,
    "wire tap": _TAP,
    "splitter": _SPLIT,
    "aggregator": _AGGREGATE,
    "message translator": _TRANSLATE,
    "content filter": _REDUCE,
    "content enricher": _ENRICH,
    "resequencer": _SEQUENCE,
    "idempotent receiver": _ONCE,
    "redelivery on exception": _RETRY,
    "script": _letters("{ py }"),
}
ENDPOINTS = {
    "files": FILES, "parquet": TABLE, "table": TABLE, "memory": MEMORY,
    "console": CONSOLE, "void": VOID, "rate": RATE, "dataframe": TABLE,
}  # fmt: skip
