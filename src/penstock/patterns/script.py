"""Script: the user's Python over a batch of messages; the one step that leaves Spark's own plan.

The function gets a `pyarrow.Table` with the body's fields and returns one with the declared fields and as many rows.
To drop or multiply messages it adds an integer column `_row`: the row that each result came from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from penstock.errors import BadRoute, TypeMismatch
from penstock.patterns.node import EXPRESSION, WHOLE, Node, Paths
from penstock.schema import SchemaLike, Struct, schema

ROW = "_row"


@dataclass(frozen=True, slots=True)
class Script(Node):
    function: Callable[[Any], Any] = field(repr=False)
    returns: Struct

    verb: ClassVar[str] = "script"
    pattern: ClassVar[str] = "script"
    template: ClassVar[str] = EXPRESSION
    messages: ClassVar[str] = "1:n"
    rewrites: ClassVar[bool] = True

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


def script(function: Callable[[Any], Any], returns: SchemaLike) -> Script:
    if not callable(function):
        raise BadRoute(f"{function!r} is not a function")
    return Script(function, schema(returns))
