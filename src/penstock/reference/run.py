"""Run messages through a plan, in one batch or in several, and say what happened to each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from penstock.budget import check_batch, messages_of
from penstock.endpoints.memory import as_messages
from penstock.errors import BadRoute, UnknownChannel, did_you_mean
from penstock.message import DeadLetter, Message
from penstock.plan.plan import Entry, Plan
from penstock.reference.decode import decode
from penstock.reference.outcome import Outcome, Trace, TraceStep
from penstock.reference.resume import STEP, entrances
from penstock.reference.runner import Runner

__all__ = ["Outcome", "Trace", "TraceStep", "decode", "replay", "run", "run_batches", "trace"]

Messages = Mapping[str, Iterable[object]] | Iterable[object]


def run(plan: Plan, messages: Messages, batches: Sequence[int] | None = None, now: float = 0.0) -> Outcome:
    """All messages through the plan, to the end: in one batch, or in batches of the given sizes.

    With several sources, `messages` maps the name of a source's route to a list.
    """
    given = _by_route(plan, messages)
    return run_batches(plan, [(now, part) for part in cut(given, batches)] if batches is not None else [(now, given)])


def run_batches(
    plan: Plan, batches: Iterable[tuple[float, Messages]], stop: bool = True, stream: bool = False
) -> Outcome:
    """Several batches, each with its clock; what is remembered stays from one to the next.

    At the end comes a stop, which flushes what waits unless a step says otherwise. With `stream` it stays, unless a
    step says otherwise; without `stop` the run is not over, and everything stays.
    """
    runner = Runner(plan)
    seen: Counter[str] = Counter()
    outcomes: list[Outcome] = []
    for now, messages in batches:
        if outcomes:
            _check_budget(plan, outcomes[-1])
        arrivals = list(_arrivals(plan, messages, seen))
        outcomes.append(runner.batch(now, arrivals))
    outcomes = outcomes or [Outcome()]
    if stop:
        outcomes[-1].add(runner.stop(stream))
    _check_budget(plan, outcomes[-1])
    total = Outcome(channels={outlet.channel: [] for outlet in plan.outlets})
    for outcome in outcomes:
        total.add(outcome)
    total.batches = outcomes
    return total


def replay(
    plan: Plan, letters: Iterable[DeadLetter], at: str = STEP, source: str | None = None, now: float = 0.0,
    into: Runner | None = None,
) -> Outcome:  # fmt: skip
    """Dead letters through the plan again, from the step that failed or from the start.

    Alone they go to the end. As a batch of a stream (`into`) they meet what it remembers, and it remembers them.
    """
    runner = into or Runner(plan)
    found = entrances(plan, letters, at, source)
    outcome = runner.batch(
        now,
        [(one.reader, one.message) for one in found if one.stage is None],
        [(one.stage, one.message) for one in found if one.stage is not None],
    )
    if into is None:
        outcome.add(runner.stop())
    _check_budget(plan, outcome)
    return outcome


def _check_budget(plan: Plan, batch: Outcome) -> None:
    messages = messages_of(batch.received, batch.held)
    errors = Counter(f"{letter.error} at {letter.route}.{letter.step}" for letter in batch.dead)
    check_batch(plan.name, plan.error_budget, len(batch.dead), messages, errors)


def trace(plan: Plan, message: object, route: str | None = None) -> Trace:
    """The path of one message, through a run of which it is all."""
    entry = _entry(plan, route) if route else plan.entries[0]
    steps: list[TraceStep] = []
    runner = Runner(plan, steps)
    outcome = runner.batch(0.0, [(entry, as_messages([message], entry.route)[0])])
    outcome.add(runner.stop())
    return Trace(tuple(steps), outcome)


def cut(messages: Mapping[str, Sequence[object]], sizes: Sequence[int]) -> list[dict[str, Sequence[object]]]:
    """The messages of every source in pieces of these sizes."""
    if any(size < 0 for size in sizes):
        raise BadRoute(f"batches={list(sizes)!r} has a negative size")
    longest = max(map(len, messages.values()), default=0)
    if sum(sizes) < longest:
        raise BadRoute(f"batches={list(sizes)!r} leaves {longest - sum(sizes)} of {longest} messages over")
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    return [
        {route: values[start : start + size] for route, values in messages.items()}
        for start, size in zip(starts, sizes, strict=True)
    ]


def _arrivals(plan: Plan, messages: Messages, seen: Counter[str]) -> Iterator[tuple[Entry, Message]]:
    """The messages of one batch; offsets go on where the batch before ended."""
    for route, values in _by_route(plan, messages).items():
        entry = _entry(plan, route)
        for message in as_messages(values, entry.route, seen[route]):
            yield entry, message
        seen[route] += len(values)


def _by_route(plan: Plan, messages: Messages) -> dict[str, list[object]]:
    given = messages if isinstance(messages, Mapping) else {_only_entry(plan).route: messages}
    return {route: list(values) for route, values in given.items()}


def _only_entry(plan: Plan) -> Entry:
    if len(plan.entries) != 1:
        names = ", ".join(entry.route for entry in plan.entries)
        raise BadRoute(f"app {plan.name!r} has {len(plan.entries)} sources: {names}",
                       fix="give the messages of each as {route: [...]}")  # fmt: skip
    return plan.entries[0]


def _entry(plan: Plan, route: str) -> Entry:
    for entry in plan.entries:
        if entry.route == route:
            return entry
    raise UnknownChannel(
        f"no route named {route!r} has a source", fix=did_you_mean(route, (e.route for e in plan.entries))
    )
