"""A route: where messages come from, the patterns they pass, where they go. Nothing here runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from penstock.budget import Budget
from penstock.delivery import LEVELS
from penstock.endpoints.base import Sink, Source
from penstock.endpoints.lookup import LookupTable
from penstock.errors import BadRoute, Origin, PenstockError, caller, did_you_mean
from penstock.patterns.aggregate import REOPEN, aggregate
from penstock.patterns.balance import balance
from penstock.patterns.choice import choice
from penstock.patterns.content_filter import content_filter
from penstock.patterns.enrich import NULL_POLICY, enrich, enrich_from
from penstock.patterns.filter import filter_messages
from penstock.patterns.idempotent import idempotent
from penstock.patterns.join import Join
from penstock.patterns.key import FLUSH
from penstock.patterns.multicast import multicast
from penstock.patterns.node import DEAD, FALSE, Node, check_channel
from penstock.patterns.recipients import recipients
from penstock.patterns.redelivery import CURRENT, Redelivery, redelivery
from penstock.patterns.resequence import resequence
from penstock.patterns.script import script
from penstock.patterns.split import split, split_fields
from penstock.patterns.strategy import Strategy
from penstock.patterns.tap import tap
from penstock.patterns.to import to
from penstock.patterns.translate import translate
from penstock.schema import SchemaLike

_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Route:
    """A route reads a source, a channel, or several channels with `join`, and passes messages through its steps.

    >>> from penstock import Route, Void, body
    >>> route = Route("orders", "incoming").filter(body.total > 0).to("paid", Void())
    >>> [step.pattern for step in route.steps]
    ['message filter', 'message channel']

    Every verb returns a new route. Steps are named after their pattern; `name=` gives another name. `delivery` is what
    its messages are promised when something fails: "best effort", "at least once", "exactly once", which is the usual,
    or "exactly once in order".
    """

    name: str
    source: Source | Join | str
    steps: tuple[Node, ...] = ()
    origin: Origin | None = field(default_factory=caller, compare=False, repr=False)
    redelivery: Redelivery | None = None
    delivery: str | None = None

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

    def then(self, step: Callable[[], Node] | Node, name: str | None = None) -> Route:
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

    def filter(
        self, predicate: object, discard: str | None = None, missing: str = FALSE, name: str | None = None
    ) -> Route:
        """Message filter: keep what the predicate is true for; the rest is counted, or goes to `discard`."""
        return self.then(lambda: filter_messages(predicate, discard, missing), name)

    def choice(
        self,
        cases: dict[str, object] | list[tuple[str, object]],
        otherwise: str | None = None,
        missing: str = FALSE,
        name: str | None = None,
    ) -> Route:
        """Content-based router: the channel of the first case that is true, else `otherwise`. Ends the route."""
        return self.then(lambda: choice(cases, otherwise, missing), name)

    def balance(
        self,
        *targets: str,
        weights: list[int] | None = None,
        sticky: object = None,
        random_seed: int | None = None,
        name: str | None = None,
    ) -> Route:
        """Load balancer: round robin, or by weights, by a sticky key, or at random with a seed. Ends the route."""
        return self.then(lambda: balance(*targets, weights=weights, sticky=sticky, random_seed=random_seed), name)

    def multicast(self, *targets: str, stop_on_exception: bool = False, name: str | None = None) -> Route:
        """A copy to every channel; on request none to those after a copy that fails. Ends the route."""
        return self.then(lambda: multicast(*targets, stop_on_exception=stop_on_exception), name)

    def recipients(
        self, of: object, known: list[str], separator: str = ",", stop_on_exception: bool = False,
        name: str | None = None,
    ) -> Route:  # fmt: skip
        """Recipient list: the message names its channels, out of the known ones. Ends the route."""
        return self.then(lambda: recipients(of, known, separator, stop_on_exception), name)

    def tap(self, target: str, name: str | None = None) -> Route:
        """Wire tap: a copy to a channel, and on."""
        return self.then(lambda: tap(target), name)

    def split(
        self, collection: object, into: str | None = None, head: list[str] | None = None,
        tail: list[str] | None = None, error_budget: Budget | None = None, name: str | None = None,
    ) -> Route:  # fmt: skip
        """Splitter: a message per element; with `into`, the element is a field between head and tail.

        When more parts of a message fail than `error_budget` allows, a number or a share, those after them are stopped.
        """
        return self.then(lambda: split(collection, into, head or (), tail or (), error_budget), name)

    def split_fields(
        self, head: list[str] | None = None, tail: list[str] | None = None, error_budget: Budget | None = None,
        name: str | None = None,
    ) -> Route:  # fmt: skip
        """Splitter: a message per field of the body, each with the head and tail fields."""
        return self.then(lambda: split_fields(head or (), tail or (), error_budget), name)

    def translate(self, mappings: Mapping[str, object], name: str | None = None) -> Route:
        """Message translator: a new body, each field an expression over the old one."""
        return self.then(lambda: translate(mappings), name)

    def keep(self, *fields: str, name: str | None = None) -> Route:
        """Content filter: keep only these fields."""
        return self.then(lambda: content_filter(keep=fields), name)

    def drop(self, *fields: str, name: str | None = None) -> Route:
        """Content filter: drop these fields."""
        return self.then(lambda: content_filter(drop=fields), name)

    def enrich(self, mappings: Mapping[str, object], name: str | None = None) -> Route:
        """Content enricher: more fields, from constants or from the message itself."""
        return self.then(lambda: enrich(mappings), name)

    def enrich_from(
        self, table: LookupTable, on: object, fields: list[str] | None = None, into: str | None = None,
        missing: str = NULL_POLICY, name: str | None = None,
    ) -> Route:  # fmt: skip
        """Content enricher: more fields, from the row of a table whose key is `on`."""
        return self.then(lambda: enrich_from(table, on, fields, into, missing), name)

    def script(self, function: Callable[[Any], Any], returns: SchemaLike, name: str | None = None) -> Route:
        """Script: a Python function from Arrow table to Arrow table; see `penstock.patterns.script`."""
        return self.then(lambda: script(function, returns), name)

    def aggregate(
        self, strategy: Strategy, by: object = None, *, size: int | str | None = None, timeout: object = None,
        interval: object = None, when: object = None, batch_end: bool = False, new_group: bool = False,
        on_timeout: str = FLUSH, on_stop: str | None = None, invalid: str = DEAD, closed: str = REOPEN,
        closed_for: object = None, name: str | None = None,
    ) -> Route:  # fmt: skip
        """Aggregator: one message of all that have the key `by`; without it, of the parts of one split message."""
        return self.then(
            lambda: aggregate(strategy, by, size, timeout, interval, when, batch_end, new_group, on_timeout, on_stop,
                              invalid, closed, closed_for),
            name,
        )  # fmt: skip

    def resequence(
        self, sequence: object, by: object = None, *, size: int | None = None, window: int | None = None,
        first: int | None = None, timeout: object = None, late: str | None = None, duplicate: str = DEAD,
        on_timeout: str = FLUSH, on_stop: str | None = None, invalid: str = DEAD, keep: object = None,
        name: str | None = None,
    ) -> Route:  # fmt: skip
        """Resequencer: in the order of their numbers; complete sequences of `size`, or `window` that may wait."""
        return self.then(
            lambda: resequence(sequence, by, size, window, first, timeout, late, duplicate, on_timeout, on_stop,
                               invalid, keep),
            name,
        )  # fmt: skip

    def idempotent(
        self, key: object = None, *, keep: object = None, keep_last: int | None = None, duplicates: str | None = None,
        remember_failed: bool = False, invalid: str = DEAD, name: str | None = None,
    ) -> Route:  # fmt: skip
        """Idempotent receiver: the first message of each key; later ones are counted, or go to `duplicates`."""
        return self.then(lambda: idempotent(key, keep, keep_last, duplicates, remember_failed, invalid), name)

    def on_error(
        self, attempts: int = 5, delay: object = "1 s", backoff: float = 2.0, cap: object = None,
        jitter: float = 0.0, errors: list[str] | None = None, message: str = CURRENT,
    ) -> Route:  # fmt: skip
        """Redelivery on exception: a message that fails in this route is tried again before it is a dead letter."""
        origin = caller()
        if self.redelivery is not None:
            raise BadRoute(f"route {self.name!r} has two redelivery policies", origin, "keep one on_error")
        made = self._checked(lambda: redelivery(attempts, delay, backoff, cap, jitter, errors, message), origin)
        return replace(self, redelivery=made)

    def to(self, channel: str, sink: Sink | None = None, name: str | None = None) -> Route:
        """Send to a channel, or to a sink under the channel's name. Ends the route."""
        return self.then(lambda: to(channel, sink), name)
