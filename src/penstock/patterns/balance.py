"""Load balancer: each message goes to exactly one of several channels, the same one on every replay.

Nothing is remembered between messages, so the turn of a message follows from the message itself: its offset (a
part's index after a splitter) for `round_robin` and `weighted`, its id for `random`, its key for `sticky`.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from penstock.errors import BadRoute, TypeMismatch
from penstock.expr.columns import expression
from penstock.expr.nodes import Expr
from penstock.expr.text import to_text
from penstock.expr.types import type_of
from penstock.patterns.drawing import arrows, line
from penstock.patterns.key import identifies
from penstock.patterns.node import PREDICATE, Node, check_channel
from penstock.patterns.verb import Verb
from penstock.schema import Struct
from penstock.yaml.writing import write_expression

if TYPE_CHECKING:
    from penstock.yaml.item import Item

ROUND_ROBIN, WEIGHTED, STICKY, RANDOM = "round_robin", "weighted", "sticky", "random"


@dataclass(frozen=True, slots=True)
class Balance(Node):
    targets: tuple[str, ...]
    strategy: str = ROUND_ROBIN
    weights: tuple[int, ...] = ()
    key: Expr | None = None
    seed: int = 0

    verb: ClassVar[str] = "balance"
    pattern: ClassVar[str] = "load balancer"
    template: ClassVar[str] = PREDICATE
    icon: ClassVar[str] = (
        line((6, 22), (16, 22)) + '<path d="M31,15 A9,9 0 1 0 34,23" marker-end="url(#small)"/>'
        + arrows((12, 22, 32), 39, 55)
    )  # fmt: skip
    channels: ClassVar[str] = "1:n"
    ends: ClassVar[bool] = True

    @property
    def needs_value(self) -> bool:
        return self.strategy == STICKY

    def expressions(self) -> tuple[Expr, ...]:
        return (self.key,) if self.key is not None else ()

    def sends_to(self) -> tuple[str, ...]:
        return self.targets

    def output(self, body: Struct) -> Struct:
        if self.key is not None and not identifies(kind := type_of(self.key, body)):
            raise TypeMismatch(f"a sticky key is one value, and no DOUBLE, but this is {kind}",
                               fix="convert it with to_string or to_integer")  # fmt: skip
        return body

    def limits(self) -> tuple[int, ...]:
        """The first turn that belongs to the next channel, per channel; the last one is the number of turns."""
        return tuple(itertools.accumulate(self.weights or (1,) * len(self.targets)))

    def detail(self) -> str:
        how = {
            WEIGHTED: f" by {':'.join(map(str, self.weights))}",
            STICKY: f" by {to_text(self.key)}" if self.key is not None else "",
            RANDOM: f" with seed {self.seed}",
        }.get(self.strategy, "")
        return f"{self.strategy}{how} -> {', '.join(self.targets)}"

    @classmethod
    def read(cls, item: Item) -> Node:
        if item.is_list:
            return balance(*item.texts())
        found = item.keys(("to",), ("weights", "sticky", "random_seed"))
        return balance(
            *found["to"].texts(),
            weights=[weight.integer() for weight in found["weights"].listed()] if "weights" in found else None,
            sticky=found.expression("sticky"),
            random_seed=found["random_seed"].integer() if "random_seed" in found else None,
        )

    def write(self) -> object:
        how: dict[str, object] = {}
        if self.strategy == WEIGHTED:
            how = {"weights": list(self.weights)}
        elif self.strategy == RANDOM:
            how = {"random_seed": self.seed}
        elif self.key is not None:
            how = {"sticky": write_expression(self.key)}
        return {"to": list(self.targets), **how} if how else list(self.targets)


def turn(value: str, seed: int = 0) -> int:
    """A number that looks random and is the same everywhere: Spark's md5 gives it too."""
    return int(hashlib.md5(f"{seed}:{value}".encode(), usedforsecurity=False).hexdigest()[:8], 16)


def balance(
    *targets: str,
    weights: tuple[int, ...] | list[int] | None = None,
    sticky: object = None,
    random_seed: int | None = None,
) -> Balance:
    if len(targets) < 2:
        raise BadRoute("a load balancer needs at least two channels")
    if sum(option is not None for option in (weights, sticky, random_seed)) > 1:
        raise BadRoute("weights, sticky and random_seed are different strategies", fix="choose one of them")
    names = tuple(check_channel(target) for target in targets)
    if weights is not None:
        if len(weights) != len(names) or not all(isinstance(w, int) and w > 0 for w in weights):
            raise BadRoute(f"weights={list(weights)!r} does not fit {len(names)} channels",
                           fix="give one positive integer per channel")  # fmt: skip
        return Balance(names, WEIGHTED, tuple(weights))
    if sticky is not None:
        return Balance(names, STICKY, key=expression(sticky))
    return Balance(names) if random_seed is None else Balance(names, RANDOM, seed=random_seed)


class BalanceVerb(Verb):
    makes: ClassVar[tuple[type[Node], ...]] = (Balance,)

    def balance(
        self,
        *targets: str,
        weights: list[int] | None = None,
        sticky: object = None,
        random_seed: int | None = None,
        name: str | None = None,
    ) -> Self:
        """Load balancer: round robin, or by weights, by a sticky key, or at random with a seed. Ends the route."""
        return self.then(lambda: balance(*targets, weights=weights, sticky=sticky, random_seed=random_seed), name)
