"""Script: the user's Python function over a batch of messages.

The function gets a `pyarrow.Table` with the body's fields and returns one with the declared fields and as many rows. To
drop or multiply messages it adds an integer column `_row`: the row that each result came from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa

from penstock.errors import BadRoute, TypeMismatch
from penstock.formats.arrow import arrow_type
from penstock.patterns.drawing import letters
from penstock.patterns.node import EXPRESSION, WHOLE, Node, Paths
from penstock.patterns.verb import Verb
from penstock.schema import SchemaLike, Struct, schema
from penstock.yaml.writing import write_function

if TYPE_CHECKING:
    from penstock.yaml.item import Item

ROW = "_row"


@dataclass(frozen=True, slots=True)
class Script(Node):
    function: Callable[[Any], Any] = field(repr=False)
    returns: Struct

    verb: ClassVar[str] = "script"
    pattern: ClassVar[str] = "script"
    template: ClassVar[str] = EXPRESSION
    icon: ClassVar[str] = letters("{ py }")
    messages: ClassVar[str] = "1:n"
    rewrites: ClassVar[bool] = True

    @property
    def calls(self) -> bool:
        return True

    def output(self, body: Struct) -> Struct:
        if "VARIANT" in f"{body} {self.returns}":
            raise TypeMismatch("a script needs the types of all fields, and VARIANT has none",
                               fix="keep the typed fields before the script, or declare their types")  # fmt: skip
        return self.returns

    def requires(self, wanted: Paths, body: Struct) -> Paths:
        return WHOLE

    def detail(self) -> str:
        return f"{self.reference()} -> {self.returns.ddl()}"

    def reference(self) -> str:
        return f"{self.function.__module__}:{self.function.__qualname__}"

    @classmethod
    def read(cls, item: Item) -> Node:
        found = item.keys(("function", "returns"))
        with found["returns"].located():
            return script(found["function"].function(), found["returns"].text())

    def write(self) -> object:
        return {"function": write_function(self.function), "returns": self.returns.ddl()}


def script(function: Callable[[Any], Any], returns: SchemaLike) -> Script:
    if not callable(function):
        raise BadRoute(f"{function!r} is not a function")
    return Script(function, schema(returns))


def scripted_rows(node: Script, result: pa.Table, count: int) -> list[tuple[int, dict[str, Any]]]:
    """A script's result as (incoming row, body) pairs; raises ValueError when it is not what was declared."""
    wanted = pa.schema([(name, arrow_type(kind)) for name, kind in node.returns.fields])
    rows = result[ROW].to_pylist() if ROW in result.column_names else list(range(result.num_rows))
    if ROW not in result.column_names and result.num_rows != count:
        raise ValueError(f"{count} rows went in and {result.num_rows} came out without a {ROW!r} column")
    if any(not isinstance(row, int) or not 0 <= row < count for row in rows):
        raise ValueError(f"the {ROW!r} column names a row that did not go in")
    return list(zip(rows, result.select(wanted.names).cast(wanted).to_pylist(), strict=True))


class ScriptVerb(Verb):
    makes: ClassVar[tuple[type[Node], ...]] = (Script,)

    def script(self, function: Callable[[Any], Any], returns: SchemaLike, name: str | None = None) -> Self:
        """Script: a Python function from Arrow table to Arrow table; see `penstock.patterns.script`."""
        return self.then(lambda: script(function, returns), name)
