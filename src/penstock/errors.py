"""What went wrong, where, and what to do: every error a user can cause."""

from __future__ import annotations

import difflib
import linecache
import os
import sys
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from types import FrameType

from penstock.masking import masked_line, masked_lines

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


@dataclass(frozen=True, slots=True)
class Origin:
    """The line of a route file (Python or YAML) that something came from."""

    file: str
    line: int
    text: str = ""

    def __str__(self) -> str:
        place = f"{_short(self.file)}:{self.line}"
        return f"{place}  {masked_line(self.text, _is_yaml(self.file))}" if self.text else place

    @classmethod
    def within(cls, file: str, line: int, text: str) -> Origin:
        """A line of this file, which has this text: what is a secret may only be known from the lines before."""
        lines = masked_lines(text, _is_yaml(file))
        return cls(file, line, lines[line - 1].strip() if 0 < line <= len(lines) else "")


def caller() -> Origin | None:
    """The innermost line outside this package: what the user typed."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame):
        frame = frame.f_back
    if frame is None:
        return None
    file, line = frame.f_code.co_filename, frame.f_lineno
    linecache.checkcache(file)
    return Origin.within(file, line, "".join(linecache.getlines(file, frame.f_globals)))


def _is_ours(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    if file == "<string>":  # the __init__ of a dataclass
        return str(frame.f_globals.get("__name__", "")).startswith("penstock.")
    return os.path.abspath(file).startswith(_PACKAGE + os.sep)


def _is_yaml(file: str) -> bool:
    return file.lower().endswith((".yaml", ".yml", ".json"))


def _short(file: str) -> str:
    relative = os.path.relpath(file) if os.path.isabs(file) else file
    return file if relative.startswith("..") else relative


class PenstockError(Exception):
    """The base of all errors that are the user's to fix.

    The arguments stay positional so that the exception survives pickling to an executor and back.
    """

    def __init__(self, what: str, origin: Origin | str | None = None, fix: str | None = None) -> None:
        super().__init__(what, origin, fix)
        self.what = what
        self.origin = origin
        self.fix = fix

    def __str__(self) -> str:
        lines = [f"{type(self).__name__}: {self.what}"]
        if self.origin:
            lines.append(f"  at   {self.origin}")
        if self.fix:
            lines.append(f"  fix  {self.fix}")
        return "\n".join(lines)


class BadExpression(PenstockError):
    """Text or columns that do not form an expression."""


class BadSchema(PenstockError):
    """A schema that cannot be read, or that does not fit where it is used."""


class BadRoute(PenstockError):
    """A route whose steps do not make sense together."""


class BadEndpoint(PenstockError):
    """A source or sink that is unknown, unreachable or wrongly set up."""


class BadFile(PenstockError):
    """A route file (Python or YAML) that cannot be loaded."""


class UnknownChannel(PenstockError):
    """A channel that messages are sent to and nobody reads, or that is read and nobody sends to."""


class UnknownField(PenstockError):
    """A field that the schema at this step does not have."""


class TypeMismatch(PenstockError):
    """An operation on values of types that do not go together."""


class DuplicateName(PenstockError):
    """Two routes, steps or endpoints of one name."""


class RouteCycle(PenstockError):
    """Channels that lead back to where they started."""


class BudgetExceeded(PenstockError):
    """More messages of a batch failed than its app allows."""


class ChangedApp(PenstockError):
    """An app that cannot go on where another version of it stopped."""


class CheckpointInUse(PenstockError):
    """A checkpoint that another stream or replay works with."""


class CannotReplay(PenstockError):
    """A dead letter that cannot go on where it is asked to."""


class BadBenchmark(PenstockError):
    """A benchmark, peer or run that does not exist, or a range that cannot be read."""


class BadMachine(PenstockError):
    """Something the machine lacks: a Java runtime, a package, memory."""


def counted(count: int, name: str) -> str:
    """So many of them, as people say it."""
    return f"1 {name}" if count == 1 else f"{count:,} {name}s"


_MOST_COMPARED = 100
"""Names, those that sort next to the word: comparing takes a tenth of a millisecond each, and a server waits for it."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A line for `fix`: the nearest known name, then all of them."""
    names = sorted(known)
    if not names:
        return "none is known here"
    shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    place = max(0, bisect_left(names, word) - _MOST_COMPARED // 2)
    near = difflib.get_close_matches(word, names[place : place + _MOST_COMPARED], n=1)
    return f"did you mean {near[0]!r}? known: {shown}" if near else f"known: {shown}"
