"""The syntax of regular expressions in RFC 9485 (I-Regexp)."""

from __future__ import annotations

import re
from typing import NamedTuple

_CATEGORY = r"\\[pP]\{(?:L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|Z[lps]?|S[ckmo]?|C[cfno]?)\}"
_ESCAPED = r"\\[(-+\-.?\[-^nrt{-}]"
_IN_CLASS = rf"(?:[^\-\[\]\\\ud800-\udfff]|{_ESCAPED})"
_MEMBER = rf"(?:{_IN_CLASS}(?:-{_IN_CLASS})?|{_CATEGORY})"
_TOKEN = re.compile(
    rf"""(?P<character>[^()*+.?\[\\\]{{|}}\ud800-\udfff]|{_ESCAPED})
    |(?P<set>\.|{_CATEGORY}|\[\^?(?:-|{_MEMBER}){_MEMBER}*-?\])
    |(?P<quantifier>[*+?]|\{{(?P<least>[0-9]+)(?:,(?P<most>[0-9]*))?\}})
    |(?P<symbol>[()|])""".replace("\n    ", "")
)


class Token(NamedTuple):
    """`kind` is character (perhaps escaped), set, quantifier or symbol; a quantifier without `most` has no end."""

    kind: str
    text: str
    least: int = 1
    most: int | None = 1


def read(pattern: str) -> list[Token] | None:
    """The tokens of a pattern, or None if it is not written by the rules."""
    found: list[Token] = []
    position = depth = 0
    while position < len(pattern):
        token = _TOKEN.match(pattern, position)
        if token is None or token.lastgroup is None:
            return None
        found.append(_token(token))
        position = token.end()
        depth += {"(": 1, ")": -1}.get(token.group(), 0)
        if depth < 0 or (token["quantifier"] and not _may_be_repeated(found[-2:-1])):
            return None
    return found if depth == 0 else None


def _may_be_repeated(before: list[Token]) -> bool:
    return bool(before) and (before[0].kind in ("character", "set") or before[0].text == ")")


def _token(found: re.Match[str]) -> Token:
    text = found.group()
    if not found["quantifier"]:
        kind = "character" if found["character"] is not None else "set" if found["set"] else "symbol"
        return Token(kind, text)
    if found["least"] is None:
        return Token("quantifier", text, int(text == "+"), 1 if text == "?" else None)
    least = int(found["least"])
    most = least if found["most"] is None else int(found["most"]) if found["most"] else None
    return Token("quantifier", text, least, most)


def positions(tokens: list[Token]) -> int:
    """The characters of a pattern, each as often as it is repeated: so many RE2 may have to follow at once."""
    levels, last = [0], 0
    for token in tokens:
        if token.kind == "quantifier":
            levels[-1] += last * (max(token.least, token.most or 1) - 1)
        elif token.kind != "symbol":
            levels[-1] += (last := 1)
        elif token.text == "(":
            levels.append(0)
        elif token.text == ")":
            last = levels.pop()
            levels[-1] += last
    return levels[0]


def depth(tokens: list[Token]) -> int:
    """How many groups stand inside one another."""
    deepest = level = 0
    for token in tokens:
        level += {"(": 1, ")": -1}.get(token.text, 0) if token.kind == "symbol" else 0
        deepest = max(deepest, level)
    return deepest
