"""Exact numbers of JSON as msgspec gives them: as text, as it was written, or as a whole number."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, ClassVar

from penstock.schema import DecimalType
from penstock.values import read, text_of


class ExactText(str):
    """The text of a number that its type can hold as it is."""

    __slots__ = ()
    kind: ClassVar[DecimalType]
    fits: ClassVar[re.Pattern[str]]


@lru_cache(maxsize=256)
def exact_text(kind: DecimalType) -> type[ExactText]:
    """The class of such texts for one type: msgspec tells its hook no more than that."""
    whole = kind.precision - kind.scale
    digits = f"(?:0|[1-9][0-9]{{0,{whole - 1}}})" if whole else "0"
    fits = re.compile(rf"-?{digits}(?:\.[0-9]{{1,{kind.scale}}})?" if kind.scale else f"-?{digits}")
    return type("ExactText", (ExactText,), {"__slots__": (), "kind": kind, "fits": fits})


def read_exact(wanted: type[ExactText], given: Any) -> ExactText:
    """What `values.read` says of it; most texts are seen to fit without making a number."""
    if isinstance(given, int) and not isinstance(given, bool):
        given = str(given)
    if isinstance(given, str):
        if wanted.fits.fullmatch(given):
            return wanted(given)
        value = read(given, wanted.kind)
        if value is not None:
            return wanted(text_of(value))
    raise ValueError(wanted.kind)
