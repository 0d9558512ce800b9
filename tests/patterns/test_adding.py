"""To add a stateless pattern takes a node with its verb, a function for blocks and one for single messages.

Everything else works from what the node says: here, with a pattern that stands in no file of the package.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pytest

import penstock
from penstock import App, Json, Memory, Message, Route, body, collect, function, header
from penstock.errors import PenstockError
from penstock.expr.columns import expression
from penstock.expr.nodes import Expr
from penstock.expr.text import to_text
from penstock.expr.types import type_of
from penstock.kernel import steps as kernel
from penstock.kernel.asked import Answers
from penstock.kernel.block import Block
from penstock.kernel.headers import with_headers
from penstock.kernel.outcome import NEXT, Moved, Outcome
from penstock.patterns.node import EXPRESSION, Node
from penstock.patterns.verb import Verb
from penstock.plan.diagram import mermaid
from penstock.plan.plan import Stage
from penstock.plan.svg import svg
from penstock.reference import steps as reference
from penstock.reference.effects import Continue, Effect
from penstock.route.yaml import from_yaml, to_yaml
from penstock.schema import STRING, Struct
from penstock.testing import KERNEL, REFERENCE, run
from penstock.yaml.item import Item
from penstock.yaml.writing import write_expression

# One file: patterns/stamp.py


@dataclass(frozen=True, slots=True)
class Stamp(Node):
    """The header `stamp` gets a text of the message, or goes away."""

    text: Expr

    verb: ClassVar[str] = "stamp"
    pattern: ClassVar[str] = "stamp"
    template: ClassVar[str] = EXPRESSION
    icon: ClassVar[str] = '<rect x="20" y="10" width="24" height="24" class="full"/>'

    def expressions(self) -> tuple[Expr, ...]:
        return (self.text,)

    def output(self, body: Struct) -> Struct:
        if type_of(self.text, body) != STRING:
            raise PenstockError("a stamp is text")
        return body

    def detail(self) -> str:
        return f"stamp = {to_text(self.text)}"

    @classmethod
    def read(cls, item: Item) -> Node:
        return cls(item.expression())

    def write(self) -> object:
        return write_expression(self.text)


class StampVerb(Verb):
    makes: ClassVar[tuple[type[Node], ...]] = (Stamp,)

    def stamp(self, text: object, name: str | None = None) -> Self:
        """Put a stamp on the message."""
        return self.then(lambda: Stamp(expression(text)), name)


# In the package it is one of the bases of Route.


@dataclass(frozen=True)
class OurRoute(StampVerb, Route):
    pass


# A function and its line in a file of kernel/


def stamped(node: Stamp, block: Block, asked: Answers) -> Outcome:
    made = with_headers(block, {"stamp": asked.value(node.text)})
    return Outcome([Moved(NEXT, made, np.arange(len(block)))])


# A function and its line in reference/steps.py


def stamp(stage: Stage, node: Stamp, message: Message) -> list[Effect]:
    kept = {name: text for name, text in message.headers.items() if name != "stamp"}
    text = reference.value_of(stage, node.text, message)
    return [Continue(replace(message, headers=kept if text is None else {**kept, "stamp": text}))]


@pytest.fixture(autouse=True)
def lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kernel.STEPS, Stamp, stamped)
    monkeypatch.setitem(reference.MEANINGS, Stamp, stamp)


YAML = """
app: stamps
routes:
  - route: in
    from: {memory: true, format: json, schema: "id BIGINT, name STRING"}
    steps:
      - stamp: concat('from ', name)
        name: sender
      - filter: header.stamp = 'from Ada'
      - to: {channel: out, sink: memory}
"""
GIVEN = [Message("a", b'{"name": "Ada"}', headers={"x": "y"}), Message("b", b"{}", headers={"stamp": "old"}), b"bad"]


def in_python() -> App:
    start = OurRoute("in", Memory(format=Json("id BIGINT, name STRING")))
    stamped = start.stamp(penstock.call("concat", "from ", body.name), name="sender")
    return App("stamps", stamped.filter(header.stamp == "from Ada").to("out", Memory()))


@pytest.mark.parametrize("engine", [REFERENCE, KERNEL])
@pytest.mark.parametrize("make", [in_python, lambda: from_yaml(YAML, route=OurRoute)], ids=["python", "yaml"])
def test_it_runs_on_every_engine(make: Any, engine: str) -> None:
    result = run(make(), GIVEN, engine)
    assert [dict(message.headers) for message in result.messages("out")] == [{"x": "y", "stamp": "from Ada"}]
    assert result.filtered == {"in.filter": 1}
    assert [letter.step for letter in result.dead] == ["decode"]
    assert result.summary.conserved


def test_the_same_app_is_written_in_python_and_yaml() -> None:
    assert from_yaml(YAML, route=OurRoute).routes == in_python().routes
    assert from_yaml(to_yaml(in_python()), route=OurRoute).routes == in_python().routes


def test_explain_trace_and_pictures_know_it() -> None:
    app = in_python()
    text = "  sender  stamp            ET   channels 1:1  messages 1:1    stamp = concat('from ', name)\n"
    assert text in app.explain()
    assert "in.sender  (stamp)  on\n    concat('from ', name) = \"from Ada\"\n" in str(app.trace({"name": "Ada"}))
    assert Stamp.icon in svg(app.plan)
    assert "<b>stamp</b><br/>in.sender" in mermaid(app.plan)


def test_its_mistakes_are_found_when_the_plan_is_built() -> None:
    start = OurRoute("in", Memory(format=Json("id BIGINT")))
    with pytest.raises(PenstockError, match="route 'in', step 'stamp': a stamp is text"):
        _ = App("wrong", start.stamp(body.id).to("out", Memory())).plan
    with pytest.raises(PenstockError, match="there is no pattern 'stamp'"):
        from_yaml(YAML)


def fails(number: int) -> str:
    raise ValueError(number)


@pytest.mark.parametrize("engine", [REFERENCE, KERNEL])
def test_functions_redelivery_and_steps_that_remember_go_with_it(engine: str) -> None:
    start = OurRoute("in", Memory(format=Json("id BIGINT, name STRING")))
    failing = start.on_error(attempts=1, delay=0).stamp(function(fails, body.id, returns="STRING"))
    assert failing.steps[0].may_fail
    dead = run(App("f", failing.to("out", Memory())), [{"id": 1}], engine).dead
    assert [(letter.step, letter.error, letter.attempt) for letter in dead] == [("stamp", "FunctionFailed", 2)]
    grouped = start.stamp(body.name).aggregate(collect("ids", of="id"), by=header.stamp, size=2)
    result = run(App("g", grouped.to("out", Memory())), [{"id": 1, "name": "a"}, {"id": 2, "name": "a"}], engine)
    assert result.bodies("out") == [{"ids": [1, 2]}]
    assert result.messages("out")[0].headers["stamp"] == "a"


def importers(module: str) -> set[str]:
    """The files of the package, outside patterns/, that import from a pattern's file."""
    package = Path(penstock.__file__).parent
    found = set()
    for file in package.rglob("*.py"):
        nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if any(isinstance(node, ast.ImportFrom) and node.module == f"penstock.patterns.{module}" for node in nodes):
            found.add(str(file.relative_to(package)))
    return {name for name in found if not name.startswith("patterns/")}


def test_a_pattern_of_the_package_is_named_in_no_other_places() -> None:
    assert importers("headers") == {"kernel/content.py", "reference/steps.py", "route/route.py"}
