"""What every pattern declares about itself; checks, explain, diagram and both engines work from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from penstock.budget import Budget
from penstock.errors import BadFile, BadRoute, Origin
from penstock.expr import nodes
from penstock.expr.nodes import Expr
from penstock.schema import Path, Struct

if TYPE_CHECKING:
    from penstock.yaml.item import Item

Paths = frozenset[Path]
WHOLE: Paths = frozenset({()})
NOTHING: Paths = frozenset()

EXPRESSION, PREDICATE, NO_USER = "ET", "PT", "NUT"
FALSE, DEAD = "false", "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One step of a route.

    `verb` is its default name. `template`: ET maps message to message, PT message to channel, NUT channel to channel
    (HW-EIP 4.3). `rewrites`: the body that goes on is not the one that came in. `ends`: nothing in this route can
    follow; branches continue from named channels. `icon` is its picture in diagrams (`patterns/drawing.py`).
    """

    name: str = ""
    origin: Origin | None = field(default=None, compare=False, repr=False)

    verb: ClassVar[str]
    pattern: ClassVar[str]
    template: ClassVar[str]
    icon: ClassVar[str] = ""
    channels: ClassVar[str] = "1:1"
    messages: ClassVar[str] = "1:1"
    rewrites: ClassVar[bool] = False
    sets_headers: ClassVar[bool] = False
    ends: ClassVar[bool] = False
    stateful: ClassVar[bool] = False

    def expressions(self) -> tuple[Expr, ...]:
        """What is evaluated on the incoming message."""
        return ()

    def used(self, wanted: Struct) -> tuple[Expr, ...]:
        """Of the expressions, those that are evaluated when somebody needs `wanted` of the outgoing body."""
        return self.expressions()

    @property
    def calls(self) -> bool:
        """A function of the user's runs here."""
        return any(isinstance(part, nodes.Function) for value in self.expressions() for part in value.walk())

    @property
    def needs_value(self) -> bool:
        """A message without some value is a dead letter here."""
        return False

    @property
    def may_fail(self) -> bool:
        """A message that comes here may become a dead letter."""
        return self.calls or self.needs_value

    @classmethod
    def readers(cls) -> Mapping[str, Callable[[Item], Node]]:
        """What YAML calls the step, and how its settings are read."""
        return {cls.verb: cls.read}

    @classmethod
    def read(cls, item: Item) -> Node:
        """The step that YAML describes, checked as the verb checks it."""
        raise NotImplementedError(f"a {cls.pattern} is not read from YAML")

    @property
    def word(self) -> str:
        """What YAML calls this step."""
        return self.verb

    def write(self) -> object:
        """Its settings as `read` reads them."""
        raise BadFile(f"a {self.pattern} cannot be written as YAML")

    @property
    def keeps_order(self) -> bool:
        """Messages leave in the order in which they came."""
        return not self.stateful and self.stopping is None

    @property
    def stopping(self) -> Budget | None:
        """How many of the messages that this step makes of one may fail before those after them are stopped."""
        return None

    def sends_to(self) -> tuple[str, ...]:
        """The channels named by this step."""
        return ()

    def output(self, body: Struct) -> Struct:
        """The schema of what goes on, given the schema of what comes in; raises what the user got wrong."""
        return body

    def requires(self, wanted: Paths, body: Struct) -> Paths:
        """The fields of the incoming body that are needed when `wanted` of the outgoing body is."""
        return wanted | read_paths(self.expressions())

    def detail(self) -> str:
        """The step's settings as one line of stable text."""
        return ""


def read_paths(expressions: tuple[Expr, ...]) -> Paths:
    """The body fields that expressions read."""
    found: set[Path] = set()
    for expression in expressions:
        for part in expression.walk():
            if isinstance(part, nodes.Field) and part.root == nodes.BODY:
                found.add(names_of(part.path))
            elif isinstance(part, nodes.JsonPath):
                found.add(())  # which fields a query reads is known only once it meets the schema
    return frozenset(found)


def missing_reason(condition: Expr) -> str:
    """Why a condition has no answer; which of its fields is missing may differ from message to message."""
    paths = sorted(".".join(map(str, path)) for path in read_paths((condition,)))
    return f"the condition reads {', '.join(paths) or 'headers'}, and a value is missing"


def names_of(path: Path) -> Path:
    """The path up to the first array index."""
    names: list[str | int] = []
    for part in path:
        if isinstance(part, int):
            break
        names.append(part)
    return tuple(names)


def top_level(paths: Paths, names: Iterator[str] | tuple[str, ...]) -> Paths:
    """Of the wanted paths, those under the given fields; the whole body wants all of them."""
    if () in paths:
        return frozenset((name,) for name in names)
    chosen = set(names)
    return frozenset(path for path in paths if path[0] in chosen)


def check_missing(policy: str) -> str:
    if policy not in (FALSE, DEAD):
        raise BadRoute(f"missing={policy!r} is not a policy", fix="write missing='false' or missing='dead'")
    return policy


def check_channel(name: object) -> str:
    if not isinstance(name, str) or not name or name.startswith("_"):
        raise BadRoute(f"{name!r} is not a channel name", fix="a channel is named by text that does not start with _")
    return name
