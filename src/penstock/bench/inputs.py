"""The messages of a run and the answers to them: made when they are needed, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.bench.schedule import Amount, table_amount
from penstock.errors import PenstockError


@dataclass(frozen=True, slots=True)
class Inputs:
    """Files of messages: their names, how many messages and how many bytes are in them."""

    names: tuple[str, ...]
    messages: int
    bytes: int


class Messages:
    """The messages below a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.known: dict[Amount, Inputs] = {}

    def files(self, wanted: Amount) -> Inputs:
        if wanted not in self.known:
            from penstock.bench.models import model_files

            made = model_files(self.directory, wanted.model, wanted.scale, wanted.messages, wanted.spelling)
            names = tuple(str(Path(path).absolute()) for path in made.paths)
            self.known[wanted] = Inputs(names, made.messages, made.bytes)
        return self.known[wanted]

    def tables(self, names: Sequence[str], beside: Amount) -> dict[str, tuple[str, ...]]:
        """The tables in memory that go with these messages."""
        return {name: self.files(table_amount(name, beside)).names for name in names}

    def differences(
        self, workload: str, inputs: Sequence[str], outputs: Path, tables: Mapping[str, Sequence[str]]
    ) -> list[str]:
        """How the outputs of a peer differ from the right ones."""
        from penstock.bench.check import check

        return check(workload, _paths(inputs), outputs, {name: _paths(files) for name, files in tables.items()})


def reason_of(error: Exception) -> str:
    """Why messages cannot be made, in a line."""
    return error.what if isinstance(error, PenstockError) else f"{type(error).__name__}: {error}"


def _paths(names: Sequence[str]) -> list[Path]:
    return [Path(name) for name in names]
