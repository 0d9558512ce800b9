"""Stop, change the app, start again: what may change is told, what would lose or mix up messages is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock import App, Files, Json, Memory, Rate, Route, Void, body, collect, function, latest
from penstock.errors import ChangedApp
from penstock.kernel.state.keys import Keys
from penstock.kernel.state.step import state_steps
from penstock.kernel.state.store import DEADLINE, GONE, LEADING, NEVER, WEIGHT, Bucket, write_run
from penstock.patterns.key import HOLD
from penstock.spark.state.table import Contents, StateTable
from penstock.spark.stream import run_stream
from penstock.spark.upgrade import FILE, NOTHING, Record, StateRecord, check_and_record, check_kept, record
from penstock.testing import on_lists

ORDER = Json("id BIGINT, who STRING, total DOUBLE")
DRAIN = (
    'start the app as it was with on_stop="flush" and stop it, which empties the step, or start with a new checkpoint'
)
SINCE = "the checkpoint CHECKPOINT is of the app as it was at TIME"


def app(*routes: Route, **sinks: Any) -> App:
    return App("orders", *routes, sinks=sinks or {"x": Memory()}, dead_letters=Memory())


def intake(name: str = "intake", source: Any = None) -> Route:
    return Route(name, source or Memory((), ORDER))


def upgraded(home: Path, before: App | Record, now: App | Record, contents: Contents = NOTHING) -> str | None:
    """What is said when the second app starts at the checkpoint of the first."""
    (home / "metadata").write_text("{}")
    plans = [given.plan if isinstance(given, App) else app(intake().to("x")).plan for given in (before, now)]
    old, new = (given if isinstance(given, Record) else record(given.plan) for given in (before, now))
    check_and_record(str(home), plans[0], old, NOTHING)
    return check_and_record(str(home), plans[1], new, contents)


def refused(home: Path, before: App | Record, now: App | Record, contents: Contents = NOTHING) -> list[str]:
    (home / FILE).unlink(missing_ok=True)
    with pytest.raises(ChangedApp) as caught:
        upgraded(home, before, now, contents)
    started = msgspec.json.decode((home / FILE).read_bytes(), type=Record).started
    text = str(caught.value).replace(str(home), "CHECKPOINT").replace(started, "TIME")
    what, fix = text.removeprefix("ChangedApp: ").split("\n  fix  ")
    assert what.endswith(f"; {SINCE}")
    return [what.removesuffix(f"; {SINCE}"), fix]


def holding(
    messages: Mapping[str, int] | None = None,
    waiting: Mapping[str, int] | None = None,
    rows: Mapping[str, int] | None = None,
) -> Contents:
    return Contents(messages or {}, waiting or {}, rows or messages or {})


def test_the_same_app_goes_on_without_a_word(tmp_path: Path) -> None:
    assert upgraded(tmp_path, app(intake().to("x")), app(intake().to("x"))) is None


def test_what_may_change_is_told_in_one_line(tmp_path: Path) -> None:
    before = app(intake().filter(body.id > 0).enrich({"a": 1}).to("x"), x=Files("a"))
    now = app(
        intake().filter(body.id > 1).translate({"id": body.id}).multicast("x", "y"), x=Files("b"), y=Void()
    )  # fmt: skip
    said = upgraded(tmp_path, before, now)
    assert said is not None
    assert said.startswith("changed since the last run (")
    assert said.partition("): ")[2] == (
        "step intake.translate, intake.multicast added; step intake.enrich, intake.to removed; "
        "step intake.filter changed; sink y added; sink x changed"
    )
    assert msgspec.json.decode((tmp_path / FILE).read_bytes(), type=Record).sinks["y"] == "void, best effort"


def test_a_checkpoint_that_was_never_used_says_nothing(tmp_path: Path) -> None:
    check_and_record(str(tmp_path), app(intake().to("x")).plan, record(app(intake().to("x")).plan), NOTHING)
    other = app(intake("other", Rate()).to("x"))
    assert check_and_record(str(tmp_path), other.plan, record(other.plan), NOTHING) is None


def test_sources_keep_their_names_kinds_and_order(tmp_path: Path) -> None:
    one = app(intake().to("x"))
    assert refused(tmp_path, one, app(intake("orders").to("x"))) == [
        "route 'intake', which read memory, has no source now",
        "name it 'intake' as before, or start with a new checkpoint",
    ]  # fmt: skip
    assert refused(tmp_path, one, app(intake(source=Rate()).to("x"))) == [
        "route 'intake' reads rate now, and read memory", "read memory as before, or start with a new checkpoint",
    ]  # fmt: skip
    two = app(intake("a").to("x"), intake("b").to("y"), x=Void(), y=Void())
    assert refused(tmp_path, app(intake("a").to("x")), two) == [
        "route 'b' is a new source", "give it an app of its own, or start with a new checkpoint",
    ]  # fmt: skip
    turned = app(intake("b").to("y"), intake("a").to("x"), x=Void(), y=Void())
    assert refused(tmp_path, two, turned) == [
        "the sources are b, a, and were a, b", "give the routes in that order, or start with a new checkpoint",
    ]  # fmt: skip


def test_state_neither_begins_nor_ends_in_the_middle(tmp_path: Path) -> None:
    plain, keeps = app(intake().to("x")), app(intake().idempotent(body.id).to("x"))
    fix = "start the app as it was, or start with a new checkpoint"
    assert refused(tmp_path, plain, keeps) == ["the app keeps state now, and kept none", fix]
    assert refused(tmp_path, keeps, plain) == ["the app keeps no state now, and kept some", fix]


def grouped(by: Any = body.who, name: str = "aggregate", **how: Any) -> App:
    return app(intake().aggregate(collect("ids", of="id"), by=by, name=name, **{"size": 9, **how}).to("x"))


def test_a_step_that_holds_messages_keeps_its_name_and_pattern(tmp_path: Path) -> None:
    held = holding({"intake.aggregate": 12})
    drain = DRAIN
    expected = [
        "step 'intake.aggregate' holds 12 messages and is gone", f"keep an aggregator under that name, or {drain}",
    ]  # fmt: skip
    assert refused(tmp_path, grouped(), grouped(name="group"), held) == expected
    assert refused(tmp_path, grouped(), app(intake().to("x")), held) == expected
    sorting = app(intake().resequence(body.id, window=3, name="aggregate").to("x"))
    assert refused(tmp_path, grouped(), sorting, held) == expected
    assert upgraded(tmp_path, grouped(), grouped(size=3, timeout="1 s"), held) is not None


def test_a_step_that_holds_nothing_may_be_renamed(tmp_path: Path) -> None:
    said = upgraded(tmp_path, grouped(), grouped(name="group"))
    assert said is not None
    assert said.endswith("step intake.group added; step intake.aggregate removed")


def test_messages_that_wait_can_still_be_read(tmp_path: Path) -> None:
    was = record(grouped().plan)
    old = {"weight": "int64", "s0.id": "int64", "s0.who": "string"}
    new = {"weight": "int64", "s0.id": "string", "s0.total": "double"}
    before, now = (
        msgspec.structs.replace(was, state={"intake.aggregate": StateRecord("aggregator", "who", kept)})
        for kept in (old, new)
    )
    assert refused(tmp_path, before, now, holding({"intake.aggregate": 1})) == [
        "step 'intake.aggregate' holds 1 message, stored with other fields than it keeps now: "
        "s0.total double is new, s0.who is gone, s0.id is string, was int64",
        DRAIN,
    ]
    assert upgraded(tmp_path, before, now) is None


def test_keys_are_neither_mixed_up_nor_forgotten(tmp_path: Path) -> None:
    def app_of(key: Any, name: str = "idempotent") -> App:
        return app(intake().idempotent(key, name=name).to("x"))

    keys = holding(rows={"intake.idempotent": 1000})
    assert refused(tmp_path, app_of(body.id), app_of(body.who), keys) == [
        "step 'intake.idempotent' remembers up to 1,000 keys by id, and goes by who now",
        "go by id as before, name the new step differently, or start with a new checkpoint",
    ]
    assert refused(tmp_path, app_of(body.id), app_of(body.id, "once"), keys) == [
        "step 'intake.idempotent' remembers up to 1,000 keys, and is 'intake.once' now, which remembers none",
        "name it 'idempotent' in route 'intake' as before, or start with a new checkpoint",
    ]
    assert upgraded(tmp_path, app_of(body.id), app_of(body.who)) is not None


def failing(*steps: str, on_error: bool = True, reads: str = "id", delay: str = "1 hour") -> App:
    route = intake()
    for name in steps:
        route = route.translate({"n": function(int, body[reads], returns="BIGINT")}, name=name)
    return app((route.on_error(delay=delay) if on_error else route.idempotent(body.n)).to("x"))


def test_messages_that_wait_for_another_try_find_their_step(tmp_path: Path) -> None:
    waiting = holding(waiting={"intake.call": 3})
    drain = "let the app as it was run until nothing waits, or start with a new checkpoint"
    before = failing("call")
    assert refused(tmp_path, before, failing("ask"), waiting) == [
        "3 messages will be tried again at step 'intake.call', which is gone",
        f"keep the step under that name, or {drain}",
    ]
    assert refused(tmp_path, before, failing("call", on_error=False), waiting) == [
        "3 messages will be tried again at step 'intake.call', whose route has no redelivery now",
        f"keep on_error(...), or {drain}",
    ]
    assert refused(tmp_path, before, failing("call", delay="0 s"), waiting) == [
        "3 messages will be tried again at step 'intake.call', whose route tries again only at once now",
        f"keep on_error(...), or {drain}",
    ]
    assert refused(tmp_path, before, failing("call", delay="0 s")) == [
        "the app keeps no state now, and kept some",
        "start the app as it was, or start with a new checkpoint",
    ]
    assert refused(tmp_path, before, failing("call", reads="total"), waiting) == [
        "3 messages will be tried again at step 'intake.call', with bodies of other fields than steps read now",
        drain,
    ]
    assert upgraded(tmp_path, before, failing("call", reads="total")) is not None


def test_a_record_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text("{}")
    (tmp_path / FILE).write_text('{"app": 1')
    with pytest.raises(ChangedApp, match=r"cannot read .*penstock-app.json.*\n  fix  restore it, or start with a new"):
        check_and_record(str(tmp_path), app(intake().to("x")).plan, record(app(intake().to("x")).plan), NOTHING)


def test_state_of_another_version_is_not_misread(tmp_path: Path) -> None:
    old = pa.schema([*LEADING, (WEIGHT, pa.int64()), ("total", pa.int64())])
    rows = {"key_high": [1, 2], "key_low": [0, 0], DEADLINE: [NEVER, NEVER], GONE: [False, False], "total": [5, None]}
    run = write_run(pa.table({**rows, WEIGHT: [1, 0]}).select(old.names).cast(old), str(tmp_path))
    bucket = Bucket([run], pa.schema([(WEIGHT, pa.int64()), ("total", pa.string())]), "r.step")
    keys = Keys.of(run.table)
    assert bucket.find(keys[1:]).to_pylist() == [
        {"key_high": 2, "key_low": 0, DEADLINE: NEVER, GONE: False, WEIGHT: 0, "total": None}
    ]
    with pytest.raises(ChangedApp, match=r"step 'r.step' holds messages that were stored with other fields"):
        bucket.find(keys)


def test_a_stream_goes_on_with_another_version(spark: SparkSession, tmp_path: Path) -> None:
    given = [{"id": 1, "who": "ann", "total": 1.0}, {"id": 2, "who": "bob", "total": 2.0}]
    checkpoint, said = str(tmp_path / "checkpoint"), []

    def start(version: App, messages: list[dict[str, Any]]) -> Any:
        tested = on_lists(version, {"intake": messages})
        return run_stream(tested, checkpoint, once=True, spark=spark, on_change=said.append)

    def version(*before: str, name: str = "pair", strategy: Any = None, size: int = 2) -> App:
        route = intake()
        for condition in before:
            route = route.filter(condition, name=f"check {condition}")
        return app(route.aggregate(strategy or collect("ids", of="id"), by=body.who, size=size, name=name).to("x"))

    assert start(version(), given).summary.waiting == {"intake.pair": 2}
    more = [*given, {"id": 3, "who": "ann", "total": 3.0}]
    with pytest.raises(ChangedApp, match=r"step 'intake.pair' holds 2 messages and is gone"):
        start(version(name="couple"), more)
    with pytest.raises(ChangedApp, match=r"other fields than it keeps now: s0.total double is new"):
        start(version(strategy=latest()), more)
    assert said == []
    result = start(version("id > 0"), more)
    assert [json.loads(message.raw) for message in result.channels["x"]] == [{"ids": [1, 3]}]
    assert [line.partition("): ")[2] for line in said] == ["step intake.check id > 0 added"]
    assert start(version("id > 0"), more).summary.batches == 0
    assert len(said) == 1


def fails_once(marker: str) -> Any:
    def call(number: int) -> int:
        if Path(marker).exists():
            return number
        Path(marker).touch()
        raise TimeoutError("later")

    return call


def test_a_message_that_waits_finds_its_step_at_its_new_place(spark: SparkSession, tmp_path: Path) -> None:
    called = function(fails_once(str(tmp_path / "called")), body.id, returns="BIGINT")
    checkpoint = str(tmp_path / "checkpoint")

    def version(*more: str) -> App:
        route = intake()
        for name in more:
            route = route.filter(body.id > 0, name=name)
        route = route.enrich({"id": called}, name="call").filter(body.id < 100).on_error(delay="1 ms")
        return app(route.to("x"))

    given = [{"id": 7}]
    first = run_stream(on_lists(version(), {"intake": given}), checkpoint, once=True, spark=spark).summary
    assert first.waiting == {"intake.call": 1}
    second = on_lists(version("one", "two"), {"intake": [*given, {"id": 8}]})
    result = run_stream(second, checkpoint, once=True, spark=spark)
    assert sorted(json.loads(message.raw)["id"] for message in result.channels["x"]) == [7, 8]
    assert result.summary.steps["intake.call"].sent == 2
    assert result.summary.steps["intake.one"].received == 1
    assert (result.summary.waiting, result.summary.conserved) == ({}, True)


def test_what_would_be_stored_with_other_fields_is_not_added(tmp_path: Path) -> None:
    built = app(intake().aggregate(collect("all"), by=body.who, size=3).to("x"))
    table = StateTable(str(tmp_path / "state"), HOLD)
    check_and_record(str(tmp_path), built.plan, record(built.plan, table), NOTHING)
    (step,) = state_steps(built.plan, HOLD)
    kept = step.algorithm.payload
    check_kept(str(tmp_path), holding({step.title: 2}), step.title, kept)
    check_kept(str(tmp_path), NOTHING, step.title, pa.schema([("other", pa.int64())]))
    with pytest.raises(ChangedApp, match=r"holds 2 messages, and dead letters .* other fields: more int64 is new"):
        check_kept(str(tmp_path), holding({step.title: 2}), step.title, kept.append(pa.field("more", pa.int64())))


def test_messages_that_an_earlier_version_left_waiting_are_named(tmp_path: Path) -> None:
    table = StateTable(str(tmp_path), HOLD)
    room = {"files": [f"{tmp_path}/waiting/a.jsonl"], "earliest": 1, "latest": 2}
    note = json.dumps({"waits": {"r.enrich": 1}, "waiting": room})
    named = pytest.raises(ChangedApp, match=r"wait for another try in .*a\.jsonl, which an earlier version wrote")
    with named:
        table.check_waiting(lambda _: [note])
    table.publish(0, [note])
    with named:
        table.check_waiting(lambda _: [])


def test_waiting_messages_go_with_their_checkpoint(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    table = StateTable(str(before), HOLD)
    (before / "waiting").mkdir()
    (before / "waiting" / "a.arrow").touch()
    room = {"files": ["a.arrow"], "earliest": 1, "latest": 2**60}
    table.publish(0, [json.dumps({"waits": {"r.enrich": 1}, "waiting": room})])
    before.rename(after)
    moved = StateTable(str(after), HOLD)
    assert moved.before(1).waiting == (str(after / "waiting" / "a.arrow"),)
    moved.publish(1, [])
    assert [path.name for path in (after / "waiting").iterdir()] == ["a.arrow"]


def test_a_stop_that_a_crash_interrupted_counts_once(tmp_path: Path) -> None:
    table = StateTable(str(tmp_path), HOLD)
    table.publish(0, [])
    assert not table.is_stopped
    table.amend([json.dumps({"waits": {"r.enrich": 1}})])
    assert (table.is_stopped, table.held()) == (True, {"r.enrich": 1})
    table.publish(1, [])
    assert not table.is_stopped
