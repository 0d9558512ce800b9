"""The patterns that remember, against naive models, with messages and batches that Hypothesis makes."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import App, Json, Memory, Route, body, collect, function, join, latest, meta
from penstock.reference.outcome import Outcome
from penstock.reference.run import run, run_batches

FIELDS = "k STRING, n BIGINT, done BOOLEAN, tags ARRAY<STRING>"
KEYS = st.sampled_from(["a", "b", "c"])
BODIES = st.fixed_dictionaries(
    {"k": st.one_of(KEYS, KEYS, KEYS, st.none()), "n": st.one_of(st.integers(0, 12), st.none()), "done": st.booleans(),
     "tags": st.lists(st.sampled_from("xyz"), max_size=3)}
)  # fmt: skip
BATCHES = st.lists(st.tuples(st.integers(0, 8), st.lists(BODIES, max_size=8)), max_size=6).map(
    lambda steps: list(
        zip(itertools.accumulate((float(wait) for wait, _ in steps)), (made for _, made in steps), strict=True)
    )
)
MANY = settings(max_examples=150)


def source() -> Route:
    return Route("r", Memory((), Json(FIELDS)))


def app(*routes: Route) -> App:
    return App("state", *routes, sinks={"x": Memory(), **_second(routes)}, dead_letters=Memory())


def _second(routes: tuple[Route, ...]) -> dict[str, Memory]:
    sent = {channel for route in routes for step in route.steps for channel in step.sends_to()}
    return {"y": Memory()} if "y" in sent else {}


def flaky(value: int | None) -> int:
    if value is None or value % 3 == 0:
        raise ValueError("a multiple of three")
    return value


COMPLETIONS = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(1, 4),
        "timeout": st.integers(1, 9),
        "interval": st.integers(1, 9),
        "when": st.just("done"),
        "batch_end": st.booleans(),
        "new_group": st.booleans(),
        "on_stop": st.sampled_from(["flush", "discard", "hold"]),
        "invalid": st.sampled_from(["dead", "filter"]),
    },
)
CLOSED = st.sampled_from([{}, {"closed": "dead", "closed_for": 5}, {"closed": "filter", "closed_for": 1}])


def completes(settings: dict[str, Any]) -> bool:
    return any(settings.get(name) for name in ("size", "timeout", "interval", "when", "batch_end", "new_group"))


@st.composite
def steps(draw: Any) -> list[tuple[str, dict[str, Any]]]:
    """Some steps, most of them with memory, that keep the fields of the body."""
    found = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["aggregate", "resequence", "sequences", "idempotent", "fail", "tap", "split"]))
        how: dict[str, Any] = {}
        if kind == "aggregate":
            how = draw(COMPLETIONS.filter(completes))
            how |= {} if how.get("new_group") else draw(CLOSED)
        elif kind == "resequence":
            how = {"window": draw(st.integers(1, 3)), "late": draw(st.sampled_from(["dead", "filter", "pass"])),
                   "first": draw(st.sampled_from([None, 0, 3])), "timeout": draw(st.sampled_from([None, 4])),
                   "duplicate": draw(st.sampled_from(["dead", "filter"]))}  # fmt: skip
        elif kind == "sequences":
            how = {"size": draw(st.integers(1, 4)), "on_stop": draw(st.sampled_from([None, "discard", "hold"]))}
        elif kind == "idempotent":
            how = {"keep": draw(st.sampled_from([None, 5])), "keep_last": draw(st.sampled_from([None, 2])),
                   "remember_failed": draw(st.booleans())}  # fmt: skip
        found.append((kind, how))
    return found


def built(described: list[tuple[str, dict[str, Any]]], policy: dict[str, Any] | None) -> App:
    route = source()
    for kind, how in described:
        match kind:
            case "aggregate":
                route = route.aggregate(latest(), by=body.k, **how)
            case "resequence" | "sequences":
                route = route.resequence(body.n, by=body.k, **how)
            case "idempotent":
                route = route.idempotent([body.k, body.n], **how)
            case "fail":
                route = route.enrich({"n": function(flaky, body.n, returns="BIGINT")})
            case "tap":
                route = route.tap("y") if all(step.pattern != "wire tap" for step in route.steps) else route
            case "split":
                route = route.split(body.tags, into="tag", head=["k", "n", "done", "tags"]).drop("tag")
    return app((route if policy is None else route.on_error(**policy)).to("x"))


POLICIES = st.one_of(
    st.none(),
    st.fixed_dictionaries({"attempts": st.integers(1, 3), "delay": st.sampled_from([0, 1, 7]), "jitter": st.just(0.5)}),
)


@MANY
@given(steps(), POLICIES, BATCHES, st.booleans(), st.booleans())
def test_no_message_is_lost_in_any_batch(
    described: list[Any], policy: Any, batches: list[Any], stop: bool, stream: bool
) -> None:
    outcome = run_batches(built(described, policy).plan, batches, stop, stream)
    assert outcome.received == sum(len(messages) for _, messages in batches)
    for batch in outcome.batches:
        assert batch.summary("state").conserved
    assert outcome.summary("state").conserved
    assert outcome.held >= 0
    holds = any(how.get("on_stop") == "hold" for _, how in described)
    assert not stop or stream or holds or outcome.held == 0


def groups(outcome: Outcome) -> list[tuple[str, list[str]]]:
    """Which messages went into which aggregate, and why it was complete."""
    return sorted(
        (message.headers["completed-by"], [str(part) for part in (message.fields or {})["ns"]])
        for message in outcome.channels["x"]
    )


def naive_groups(batches: list[Any], size: int | None, timeout: int | None, interval: int | None) -> list[Any]:
    """Per key, over the list of arrivals with their times."""
    found = []
    for key in "abc":
        times = [(now, message["n"], message["done"]) for now, messages in batches for message in messages
                 if message["k"] == key]  # fmt: skip
        clock = [now for now, _ in batches]
        members: list[Any] = []
        arrivals = list(times)
        for number, now in enumerate(clock):
            if number and clock[number - 1] == now:
                continue
            if members and timeout is not None and now >= members[-1][0] + timeout:
                found.append(("timeout", [str(n) for _, n, _ in members]))
                members = []
            if members and interval is not None and now >= members[0][0] + interval:
                found.append(("interval", [str(n) for _, n, _ in members]))
                members = []
            while arrivals and arrivals[0][0] == now:
                members.append(arrivals.pop(0))
                if size is not None and len(members) == size:
                    found.append(("size", [str(n) for _, n, _ in members]))
                    members = []
                elif members[-1][2]:
                    found.append(("predicate", [str(n) for _, n, _ in members]))
                    members = []
        if members:
            found.append(("stop", [str(n) for _, n, _ in members]))
    return sorted(found)


@MANY
@given(BATCHES, st.one_of(st.none(), st.integers(1, 4)), st.sampled_from([None, 3, 8]), st.sampled_from([None, 5, 12]))
def test_groups_are_those_of_a_naive_model(
    batches: list[Any], size: int | None, timeout: int | None, interval: int | None
) -> None:
    strategy = collect("ns", of="n")
    route = source().aggregate(
        strategy, by=body.k, size=size, timeout=timeout, interval=interval, when=body.done, invalid="filter"
    )
    outcome = run_batches(app(route.to("x")).plan, batches)
    assert groups(outcome) == naive_groups(batches, size, timeout, interval)


@MANY
@given(st.lists(BODIES, max_size=12), st.lists(st.integers(0, 4), max_size=8))
def test_groups_by_size_do_not_depend_on_how_messages_come_in_batches(messages: list[Any], sizes: list[int]) -> None:
    plan = app(source().aggregate(collect("ns", of="n"), by=body.k, size=3).to("x")).plan
    sizes = [*sizes, len(messages)]
    together, apart = run(plan, messages), run(plan, messages, batches=sizes)
    assert [m.fields for m in together.channels["x"]] == [m.fields for m in apart.channels["x"]]
    assert len(together.dead) == len(apart.dead)


@MANY
@given(st.lists(BODIES, max_size=12), st.lists(st.integers(0, 4), max_size=8))
def test_split_and_aggregate_are_the_reverse_of_each_other(messages: list[Any], sizes: list[int]) -> None:
    routes = (
        source().split(body.tags, into="tag", head=["k", "n"]).balance("one", "two"),
        Route("one", "one").to("one-done"),
        Route("two", "two").filter("true").to("two-done"),
        Route("all", join("one-done", "two-done"))
        .aggregate(collect("tags", of="tag", head=["k", "n"]), size="parts")
        .to("x"),
    )  # fmt: skip
    outcome = run(app(*routes).plan, messages, batches=[*sizes, len(messages)])
    whole = [(m["k"], m["n"], m["tags"]) for m in messages if m["tags"]]
    found = {message.id: message.fields or {} for message in outcome.channels["x"]}
    assert sorted(found) == sorted(f"r/0/{number}" for number, message in enumerate(messages) if message["tags"])
    assert Counter((f["k"], f["n"], tuple(f["tags"])) for f in found.values()) == Counter(
        (k, n, tuple(tags)) for k, n, tags in whole
    )


@MANY
@given(st.permutations(range(1, 13)), st.lists(st.integers(0, 5), max_size=8), st.integers(1, 3))
def test_a_window_that_is_wide_enough_restores_the_order(order: list[int], sizes: list[int], window: int) -> None:
    messages = [{"k": "a", "n": number} for number in order]
    plan = app(source().resequence(body.n, window=12, first=1).to("x")).plan
    outcome = run(plan, messages, batches=[*sizes, 12])
    assert [(m.fields or {})["n"] for m in outcome.channels["x"]] == list(range(1, 13))
    narrow = run(app(source().resequence(body.n, window=window, late="filter").to("x")).plan, messages, [*sizes, 12])
    sent = [(m.fields or {})["n"] for m in narrow.channels["x"]]
    assert sent == sorted(sent)
    assert len(sent) + narrow.filtered.total() == 12


def naive_sequence(batches: list[list[int]], window: int, first: int | None) -> tuple[list[int], int, int]:
    """What is sent, how many are late, how many come twice."""
    sent: list[int] = []
    late = twice = 0
    waiting: set[int] = set()
    expected = first
    for numbers in batches:
        begun = expected
        for number in numbers:
            if begun is not None and number < begun:
                late += 1
            elif number in waiting:
                twice += 1
            else:
                waiting.add(number)
        if expected is None and waiting:
            expected = min(waiting)
        while waiting and (expected in waiting or len(waiting) > window):
            expected = min(waiting)
            waiting.remove(expected)
            sent.append(expected)
            expected += 1
    return sent + sorted(waiting), late, twice


@MANY
@given(st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=6), st.integers(1, 4), st.sampled_from([None, 0, 4]))
def test_an_endless_sequence_is_that_of_a_naive_model(batches: list[list[int]], window: int, first: int | None) -> None:
    plan = app(source().resequence(body.n, window=window, first=first).to("x")).plan
    outcome = run_batches(plan, [(0.0, [{"n": number} for number in numbers]) for numbers in batches])
    sent, late, twice = naive_sequence(batches, window, first)
    assert [(m.fields or {})["n"] for m in outcome.channels["x"]] == sent
    assert Counter(letter.error for letter in outcome.dead) == +Counter(LateMessage=late, DuplicateSequence=twice)


@MANY
@given(st.lists(st.permutations(range(4)), max_size=4), st.lists(st.integers(0, 5), max_size=8))
def test_complete_sequences_come_one_after_the_other(sequences: list[list[int]], sizes: list[int]) -> None:
    messages = [{"n": number} for sequence in sequences for number in sequence]
    outcome = run(app(source().resequence(body.n, size=4).to("x")).plan, messages, [*sizes, len(messages)])
    assert [(m.fields or {})["n"] for m in outcome.channels["x"]] == list(range(4)) * len(sequences)


@MANY
@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=14), st.lists(st.integers(0, 5), max_size=8))
def test_each_key_passes_until_it_succeeds_and_never_again(messages: list[Any], sizes: list[int]) -> None:
    route = source().idempotent(body.n).filter(body.done, missing="dead").to("x")
    bodies = [{"n": number, **({"done": True} if good else {})} for number, good in messages]
    outcome = run(app(route).plan, bodies, [*sizes, len(bodies)])
    succeeded: set[int] = set()
    dead = 0
    for number, good in messages:
        dead += number not in succeeded and not good
        succeeded |= {number} if good else set()
    assert Counter((m.fields or {})["n"] for m in outcome.channels["x"]) == Counter(succeeded)
    assert len(outcome.dead) == dead


@MANY
@given(st.lists(st.integers(0, 5), max_size=14), st.lists(st.integers(0, 5), max_size=8))
def test_duplicates_and_firsts_are_all_there(numbers: list[int], sizes: list[int]) -> None:
    route = source().idempotent(body.n, duplicates="y").to("x")
    outcome = run(app(route).plan, [{"n": number} for number in numbers], [*sizes, len(numbers)])
    firsts = [(m.fields or {})["n"] for m in outcome.channels["x"]]
    again = Counter((m.fields or {})["n"] for m in outcome.channels["y"])
    assert firsts == list(dict.fromkeys(numbers))
    assert again + Counter(firsts) == Counter(numbers)


@MANY
@given(st.lists(st.integers(1, 20), max_size=10), st.integers(1, 4), st.sampled_from([0, 1, 5]))
def test_every_message_is_tried_until_it_succeeds_or_the_tries_are_used_up(
    failures: list[int], attempts: int, delay: int
) -> None:
    calls: Counter[int] = Counter()

    def call(number: int) -> int:
        calls[number] += 1
        if calls[number] <= failures[number]:
            raise TimeoutError
        return number

    route = source().enrich({"n": function(call, body.n, returns="BIGINT")}).on_error(attempts=attempts, delay=delay)
    outcome = run(app(route.to("x")).plan, [{"n": number} for number in range(len(failures))])
    good = [number for number, times in enumerate(failures) if times <= attempts]
    assert sorted((m.fields or {})["n"] for m in outcome.channels["x"]) == good
    assert [letter.attempt for letter in outcome.dead] == [attempts + 1] * (len(failures) - len(good))


def test_copies_meet_again_by_the_id_of_the_message() -> None:
    routes = (
        source().multicast("a", "b"), Route("a", "a").to("a-done"), Route("b", "b").to("b-done"),
        Route("all", join("a-done", "b-done")).aggregate(collect("ns", of="n"), by=meta("id"), size=2).to("x"),
    )  # fmt: skip
    outcome = run(app(*routes).plan, [{"n": 1}, {"n": 2}])
    assert groups(outcome) == [("size", ["1", "1"]), ("size", ["2", "2"])]
