"""Redelivery on exception, resequencer, idempotent receiver."""

from __future__ import annotations

from collections.abc import Callable

from penstock import App, Route, body, call, default, function, header
from penstock.bench.workloads.ends import Ends

REDELIVERIES = {"A": 1, "B": 2, "C": 4, "D": 8, "E": 16, "F": 32}
SEQUENCES = (10, 100, 1_000, 10_000, 100_000)


def fail_until(needed: int, tries: int) -> bool:
    """A receiver that is there only after so many tries."""
    if tries < needed:
        raise ConnectionError("the receiver does not answer")
    return True


def redelivery(letter: str, count: int) -> Callable[[Ends], App]:
    tries = default(call("to_integer", header.redelivered), 0)

    def build(ends: Ends) -> App:
        return ends.app(
            f"MDS-1-{letter}",
            Route("orders", ends.source())
            .enrich({"delivered": function(fail_until, count, tries, returns="BOOLEAN")})
            .on_error(attempts=count, delay=0)
            .to("out"),
        )

    return build


def resequencer(size: int) -> Callable[[Ends], App]:
    return lambda ends: ends.app(
        f"MDS-2-{size}", Route("orders", ends.source()).resequence(body.position, by=body.group, size=size).to("out")
    )


def idempotent_receiver(name: str) -> Callable[[Ends], App]:
    return lambda ends: ends.app(name, Route("orders", ends.source()).idempotent(body.msgId).to("out"))


APPS: dict[str, Callable[[Ends], App]] = {
    **{f"MDS-1-{letter}": redelivery(letter, count) for letter, count in REDELIVERIES.items()},
    **{f"MDS-2-{size}": resequencer(size) for size in SEQUENCES},
    "MDS-3-A": idempotent_receiver("MDS-3-A"),
    "MDS-3-B": idempotent_receiver("MDS-3-B"),
}
