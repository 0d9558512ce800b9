"""Random routes that tasks can run while they read, and messages for them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from hypothesis import strategies as st

from penstock import Files, Json, Route, body, call, item, when

ORDER = Json("id BIGINT, total DOUBLE, note STRING, lines ARRAY<STRUCT<sku: STRING, price: DOUBLE>>")

BODIES = st.fixed_dictionaries(
    {},
    optional={
        "id": st.none() | st.integers(0, 9),
        "total": st.none() | st.floats(0, 10) | st.just("much"),
        "note": st.none() | st.sampled_from(["", "a", "b", 'ü"\\']),
        "lines": st.none() | st.lists(st.sampled_from([None, {}, {"sku": "s"}, {"sku": "t", "price": 1}]), max_size=3),
    },
)
MESSAGES = st.lists(BODIES.map(lambda one: json.dumps(one).encode()) | st.just(b"broken"), max_size=12)
CONDITIONS = st.sampled_from(
    [
        body.total < 5,
        body.note == "a",
        (body.id > 3) & (body.total >= 1),
        body.note.is_in("a", "b"),
        ~body.id.is_present(),
        body.id * 2 + 1 > body.total / 3,
        call("upper", body.note) == "B",
        body.lines.any(item.price > body.total),
    ]
)
CHANNELS = ("one", "two", "three")


REWRITING: list[Callable[[Route], Route]] = [
    lambda route: route.translate({"n": body.id, "t": body.total}),
    lambda route: route.keep("id", "note"),
    lambda route: route.split(body.lines),
]
COMPUTING: list[Callable[[Route], Route]] = [
    lambda route: route.translate({"desk": when(body.total > 5, "high").otherwise("low"), "n": body.id + 1}),
    lambda route: route.translate({"id": body.id, "kind": "order", "first": body.lines[0].sku}),
    lambda route: route.drop("lines"),
    lambda route: route,
]


@st.composite
def routes(draw: st.DrawFn) -> list[Route]:
    """A route with some steps, and one behind each channel that it ends in; only bodies as they came are looked at."""
    first = _moved(draw, Route("first", Files("in.jsonl", ORDER)))
    rewritten = draw(st.booleans())
    if rewritten:
        first = draw(st.sampled_from(REWRITING + COMPUTING[:2]))(first)
    endings: dict[str, Callable[[], Route]] = {
        "multicast": lambda: first.multicast("a", "b", "c"),
        "balance": lambda: first.balance("a", "b", "c"),
        "weighted": lambda: first.balance("a", "b", "c", weights=[1, 3, 2]),
    }
    if not rewritten:
        endings["choice"] = lambda: first.choice({"a": draw(CONDITIONS), "b": draw(CONDITIONS)}, otherwise="c")
    ended = endings[draw(st.sampled_from(sorted(endings)))]()
    behind = [Route(f"behind-{channel}", channel) for channel in "abc"]
    if not rewritten:
        behind = [draw(st.sampled_from(COMPUTING))(_moved(draw, route)) for route in behind]
    behind[0] = behind[0].tap("tapped") if draw(st.booleans()) else behind[0]
    return [ended, *(route.to(last) for route, last in zip(behind, CHANNELS, strict=True))]


def _moved(draw: st.DrawFn, route: Route) -> Route:
    for number in range(draw(st.integers(0, 2))):
        route = route.filter(draw(CONDITIONS), name=f"{route.name}-{number}")
    return route


def lines(directory: Path) -> list[bytes]:
    return [line for file in sorted(directory.glob("*.jsonl")) for line in file.read_bytes().splitlines()]
