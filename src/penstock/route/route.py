"""A route: where messages come from, the patterns they pass, where they go. Nothing here runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self, TypeVar

from penstock.delivery import LEVELS
from penstock.endpoints.base import Source
from penstock.errors import BadRoute, Origin, PenstockError, caller, did_you_mean
from penstock.patterns.aggregate import AggregateVerb
from penstock.patterns.balance import BalanceVerb
from penstock.patterns.choice import ChoiceVerb
from penstock.patterns.content_filter import ContentFilterVerb
from penstock.patterns.enrich import EnrichVerb
from penstock.patterns.filter import FilterVerb
from penstock.patterns.headers import HeadersVerb
from penstock.patterns.idempotent import IdempotentVerb
from penstock.patterns.join import Join
from penstock.patterns.multicast import MulticastVerb
from penstock.patterns.node import Node, check_channel
from penstock.patterns.recipients import RecipientsVerb
from penstock.patterns.redelivery import CURRENT, Redelivery, redelivery
from penstock.patterns.resequence import ResequenceVerb
from penstock.patterns.script import ScriptVerb
from penstock.patterns.split import SplitVerb
from penstock.patterns.tap import TapVerb
from penstock.patterns.to import ToVerb
from penstock.patterns.translate import TranslateVerb

_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Route(
    FilterVerb,
    ChoiceVerb,
    BalanceVerb,
    MulticastVerb,
    RecipientsVerb,
    TapVerb,
    SplitVerb,
    TranslateVerb,
    ContentFilterVerb,
    EnrichVerb,
    HeadersVerb,
    ScriptVerb,
    AggregateVerb,
    ResequenceVerb,
    IdempotentVerb,
    ToVerb,
):
    """A route reads a source, a channel, or several channels with `join`, and passes messages through its steps.

    >>> from penstock import Route, Void, body
    >>> route = Route("orders", "incoming").filter(body.total > 0).to("paid", Void())
    >>> [step.pattern for step in route.steps]
    ['message filter', 'message channel']

    Its verbs are those of its bases, each in the file of its pattern; every one returns a new route. Steps are named
    after their pattern; `name=` gives another name. `delivery` is what its messages are promised when something fails:
    "best effort", "at least once", "exactly once", which is the usual, or "exactly once in order".
    """

    name: str
    source: Source | Join | str
    steps: tuple[Node, ...] = ()
    origin: Origin | None = field(default_factory=caller, compare=False, repr=False)
    redelivery: Redelivery | None = None
    delivery: str | None = None

    makes: ClassVar[tuple[type[Node], ...]] = (Join,)

    def __post_init__(self) -> None:
        if not self.name or not isinstance(self.name, str):
            raise BadRoute(f"{self.name!r} is not a route name", self.origin)
        if isinstance(self.source, str):
            check_channel(self.source)
        elif not isinstance(self.source, (Source, Join)):
            raise BadRoute(f"route {self.name!r} cannot read {self.source!r}", self.origin,
                           'give a source like Files(...), a channel name, or join("a", "b")')  # fmt: skip
        if self.delivery is not None and self.delivery not in LEVELS:
            raise BadRoute(f"route {self.name!r}: there is no delivery {self.delivery!r}", self.origin,
                           did_you_mean(str(self.delivery), LEVELS))  # fmt: skip

    @classmethod
    def patterns(cls) -> tuple[type[Node], ...]:
        """The steps that such a route can have: those of all its bases."""
        return tuple(node for base in cls.__mro__ for node in vars(base).get("makes", ()))

    def then(self, step: Callable[[], Node] | Node, name: str | None = None) -> Self:
        """This route with one more step; all verbs come through here."""
        origin = caller()
        node = step if isinstance(step, Node) else self._checked(step, origin)
        if self.steps and self.steps[-1].ends:
            raise BadRoute(f"route {self.name!r}: nothing can follow a {self.steps[-1].pattern}", origin,
                           "continue in another route that reads one of its channels")  # fmt: skip
        return replace(self, steps=(*self.steps, replace(node, name=name or node.name, origin=node.origin or origin)))

    def _checked(self, made: Callable[[], _Made], origin: Origin | None) -> _Made:
        """What a verb makes of its arguments; an error says which route it is in."""
        try:
            return made()
        except PenstockError as error:
            where = f"{origin}\n       {error.origin}" if isinstance(error.origin, str) else error.origin or origin
            raise type(error)(f"route {self.name!r}: {error.what}", where, error.fix) from None

    def on_error(
        self, attempts: int = 5, delay: object = "1 s", backoff: float = 2.0, cap: object = None,
        jitter: float = 0.0, errors: list[str] | None = None, message: str = CURRENT,
    ) -> Self:  # fmt: skip
        """Redelivery on exception: a message that fails in this route is tried again before it is a dead letter."""
        origin = caller()
        if self.redelivery is not None:
            raise BadRoute(f"route {self.name!r} has two redelivery policies", origin, "keep one on_error")
        made = self._checked(lambda: redelivery(attempts, delay, backoff, cap, jitter, errors, message), origin)
        return replace(self, redelivery=made)
