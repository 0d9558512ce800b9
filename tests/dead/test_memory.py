"""Dead letters that come again meet what the steps of their stream remember, and are remembered."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock import App, Files, Json, Log, Memory, Route, body, collect, function
from penstock.dead.letter import Letter
from penstock.dead.outlook import corrected, outlook
from penstock.dead.replay import finish, replay
from penstock.dead.store import Directory, Replay, letters, store_of
from penstock.endpoints.base import Sink
from penstock.errors import CannotReplay, CheckpointInUse, PenstockError
from penstock.log.reader import FileReader
from penstock.message import Message
from penstock.reference import run as reference
from penstock.reference.runner import Runner
from penstock.route.route import Route as Building
from penstock.spark import all_or_nothing, passes
from penstock.spark import replay as on_spark
from penstock.spark.checkpoint import owned
from penstock.spark.stream import run_stream
from penstock.summary import Summary
from tests.spark.files import records

ORDER = Json("id BIGINT, total DOUBLE")


def price(home: Path) -> Any:
    def known(total: float) -> float:
        if not (home / "mended").exists():
            raise ValueError("no price")
        return total * 2

    return function(known, body.total, returns="DOUBLE")


def shop(home: Path, steps: Callable[[Building], Building], sink: Sink | None = None) -> App:
    route = steps(Route("intake", Files(home / "in", ORDER)))
    return App("shop", route.to("out", sink or Files(home / "out")), dead_letters=Files(home / "dead"))


def once(home: Path, sink: Sink | None = None) -> App:
    """One order of every id, at a price that is not known until the app is mended."""
    cost = {"price": price(home)}
    return shop(home, lambda route: route.idempotent(body.id, name="once").enrich(cost, name="price"), sink)


def send(home: Path, name: str, *ids: int) -> None:
    (home / "in").mkdir(exist_ok=True)
    text = "".join(json.dumps({"id": number, "total": number}) + "\n" for number in ids)
    (home / "in" / f"{name}.jsonl").write_text(text)


def streamed(app: App, home: Path, spark: SparkSession) -> Summary:
    summary = run_stream(app, str(home / "position"), once=True, spark=spark).summary
    assert summary.conserved
    return summary


def again(app: App, home: Path, spark: SparkSession, chosen: list[Letter] | None = None) -> Summary:
    store = store_of(app)
    found = chosen if chosen is not None else [one for one in letters(store) if not one.replays]
    summary = replay(app, store, found, "step", spark=spark, checkpoint=str(home / "position")).summary
    assert summary.conserved
    return summary


def delivered(home: Path) -> list[int]:
    return sorted(record["id"] for record in records(home / "out"))


def test_a_replayed_letter_is_remembered_by_the_receiver(spark: SparkSession, tmp_path: Path) -> None:
    app = once(tmp_path)
    send(tmp_path, "monday", 1, 2)
    assert streamed(app, tmp_path, spark).dead == 2
    (tmp_path / "mended").touch()
    send(tmp_path, "tuesday", 2)  # its sender did not wait
    assert streamed(app, tmp_path, spark).delivered["out"] == 1
    summary = again(app, tmp_path, spark)
    assert (summary.received, summary.delivered["out"], dict(summary.filtered)) == (2, 1, {"intake.once": 1})
    send(tmp_path, "wednesday", 1, 2, 3)
    assert dict(streamed(app, tmp_path, spark).filtered) == {"intake.once": 2}
    assert delivered(tmp_path) == [1, 2, 3]


def test_the_reference_says_the_same(tmp_path: Path) -> None:
    plan = once(tmp_path).plan
    (entry,) = plan.entries
    runner, count = Runner(plan), iter(range(100))

    def batch(*ids: int) -> Any:
        made = [json.dumps({"id": number, "total": number}).encode() for number in ids]
        return runner.batch(0.0, [(entry, Message(f"m{next(count)}", raw)) for raw in made])

    dead = batch(1, 2).dead
    assert [letter.step for letter in dead] == ["price", "price"]
    (tmp_path / "mended").touch()
    assert len(batch(2).channels["out"]) == 1
    replayed = reference.replay(plan, dead, into=runner)
    assert (replayed.received, len(replayed.channels["out"]), replayed.filtered) == (2, 1, {"intake.once": 1})
    assert batch(1, 2, 3).filtered == {"intake.once": 2}


def test_a_letter_joins_the_sequence_that_waits_for_it(spark: SparkSession, tmp_path: Path) -> None:
    cost = {"price": price(tmp_path)}
    app = shop(tmp_path, lambda route: route.enrich(cost, name="price").resequence(body.id, window=5, first=1))
    send(tmp_path, "first", 1)
    assert streamed(app, tmp_path, spark).dead == 1
    (tmp_path / "mended").touch()
    send(tmp_path, "second", 3, 2)
    assert streamed(app, tmp_path, spark).held == 2
    again(app, tmp_path, spark)
    assert [record["id"] for record in records(tmp_path / "out")] == [1, 2, 3]


def test_a_letter_joins_the_group_that_waits_for_it(spark: SparkSession, tmp_path: Path) -> None:
    app = shop(
        tmp_path,
        lambda route: route.enrich({"price": price(tmp_path)})
        .filter(body.price > 0)
        .aggregate(collect("ids", of="id"), by=body.total > 0, size=3, name="three"),
    )
    send(tmp_path, "monday", 1)
    assert streamed(app, tmp_path, spark).dead == 1
    (tmp_path / "mended").touch()
    send(tmp_path, "tuesday", 2)
    assert streamed(app, tmp_path, spark).held == 1
    summary = again(app, tmp_path, spark)
    assert (summary.held, summary.waiting) == (1, {"intake.three": 2})
    send(tmp_path, "wednesday", 3)
    streamed(app, tmp_path, spark)
    assert [record["ids"] for record in records(tmp_path / "out")] == [[2, 1, 3]]


class Crash(BaseException):
    pass


def crash(*_: Any, **__: Any) -> None:
    raise Crash


MOMENTS = {
    "computed": (all_or_nothing, "check_budget"),
    "before it counts": (passes.Passes, "begin_replay"),
    "before it is published": (all_or_nothing, "publish"),
    "before it is remembered": (passes.Passes, "end_replay"),
}


@pytest.mark.long
@pytest.mark.parametrize("stream_first", [False, True])
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_replay_that_dies_delivers_once_whoever_comes_next(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, stream_first: bool
) -> None:
    app, (where, name) = once(tmp_path), MOMENTS[moment]
    send(tmp_path, "monday", 1)
    streamed(app, tmp_path, spark)
    (tmp_path / "mended").touch()
    with monkeypatch.context() as patch:
        for module in (on_spark, all_or_nothing):  # a process that is killed cleans nothing up
            patch.setattr(module, "forget", lambda *_: None, raising=False)
        patch.setattr(where, name, crash)
        with pytest.raises(Crash):
            again(app, tmp_path, spark)
    if stream_first:
        send(tmp_path, "tuesday", 2)
        streamed(app, tmp_path, spark)
    finish(app, store_of(app))
    left = [one for one in letters(store_of(app)) if not one.replays]
    assert bool(left) == (moment in ("computed", "before it counts"))
    if left:
        again(app, tmp_path, spark)
    send(tmp_path, "wednesday", 1, 2)
    streamed(app, tmp_path, spark)
    assert delivered(tmp_path) == [1, 2]


@pytest.mark.parametrize("stream_first", [False, True])
def test_a_replay_that_dies_reaches_a_server_once_whoever_comes_next(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream_first: bool
) -> None:
    app = once(tmp_path, Log("out", at=str(tmp_path / "log")))
    send(tmp_path, "monday", 1)
    streamed(app, tmp_path, spark)
    (tmp_path / "mended").touch()
    with monkeypatch.context() as patch:
        patch.setattr(all_or_nothing, "forget", lambda *_: None)
        patch.setattr(all_or_nothing, "publish", crash)
        with pytest.raises(Crash):
            again(app, tmp_path, spark)
    abandoned = tmp_path / "position" / "penstock-staging" / "shop-replay-0123456789ab.01234567"
    abandoned.mkdir(parents=True)  # of one that was killed while it was computed
    if stream_first:
        streamed(app, tmp_path, spark)
    finish(app, store_of(app))
    assert all(one.replays for one in letters(store_of(app)))
    assert list(abandoned.parent.iterdir()) == []
    reader = FileReader(tmp_path / "log", "out")
    pieces = [piece for number in range(reader.found().partitions)
              for piece in reader.pieces(number, 0, reader.ends(number).next)]  # fmt: skip
    values = [value for piece in pieces for value in piece.frame.values[piece.start : piece.stop].to_pylist()]
    assert list(map(json.loads, values)) == [{"id": 1, "total": 1.0, "price": 2.0}]


def test_without_state_a_replay_that_names_a_checkpoint_is_delivered_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = shop(tmp_path, lambda route: route.enrich({"price": price(tmp_path)}))
    send(tmp_path, "monday", 1)
    streamed(app, tmp_path, spark)
    (tmp_path / "mended").touch()
    write = Directory.write

    def dies_at_the_end(self: Directory, taken: Replay) -> None:
        if not taken.pending:
            raise Crash
        write(self, taken)

    with monkeypatch.context() as patch:
        patch.setattr(Directory, "write", dies_at_the_end)
        with pytest.raises(Crash):
            again(app, tmp_path, spark)
    assert delivered(tmp_path) == [1]
    assert [len(one.letters) for one in finish(app, store_of(app))] == [1]
    assert [one.replays for one in letters(store_of(app))] == [1]


def test_a_record_that_was_changed_removes_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, precious = once(tmp_path), tmp_path / "precious"
    send(tmp_path, "monday", 1)
    streamed(app, tmp_path, spark)
    (tmp_path / "mended").touch()
    with monkeypatch.context() as patch:
        patch.setattr(passes.Passes, "begin_replay", crash)
        with pytest.raises(Crash):
            again(app, tmp_path, spark)
    precious.mkdir()
    (precious / "letter").write_text("dear")
    (record,) = (tmp_path / "dead" / "_replays").glob("*.json")
    taken = json.loads(record.read_text())
    pending = json.loads(taken["pending"])
    pending["files"][0]["path"] = str(precious / "letter")
    record.write_text(json.dumps({**taken, "pending": json.dumps(pending)}))
    assert finish(app, store_of(app)) == []
    assert (precious / "letter").read_text() == "dear"


def test_a_replay_beside_a_running_stream_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    app = once(tmp_path)
    send(tmp_path, "monday", 1)
    streamed(app, tmp_path, spark)
    with owned(str(tmp_path / "position"), "a stream of app 'shop'"), pytest.raises(CheckpointInUse) as refused:
        again(app, tmp_path, spark)
    assert "belongs to a stream of app 'shop'" in refused.value.what


def test_a_replay_needs_to_know_where_the_memory_is(spark: SparkSession, tmp_path: Path) -> None:
    app = once(tmp_path)
    send(tmp_path, "monday", 1)
    streamed(app, tmp_path, spark)
    store = store_of(app)
    with pytest.raises(CannotReplay) as refused:
        replay(app, store, list(letters(store)), "step", spark=spark)
    assert refused.value.what == "step 'intake.once' remembers messages, and nobody said where its memory is"
    other = shop(tmp_path, lambda route: route.idempotent(body.id > 0, name="once").enrich({"price": price(tmp_path)}))
    with pytest.raises(PenstockError, match="remembers up to 2 keys by id, and goes by id > 0 now"):
        replay(other, store, list(letters(store)), "start", spark=spark, checkpoint=str(tmp_path / "position"))
    with pytest.raises(PenstockError, match="there is no checkpoint"):
        replay(app, store, list(letters(store)), "step", spark=spark, checkpoint=str(tmp_path / "nowhere"))


def entering(app: App, *given: bytes) -> list[str]:
    plan = app.plan
    dead = reference.run(plan, list(given)).dead
    return [place for _, _, place in outlook(plan, [Letter("x", one) for one in dead], "step").places]


def orders(route: Callable[[Building], Building], **sinks: Memory) -> App:
    made = route(Route("intake", Memory([], ORDER))).to("out", Memory())
    return App("shop", made, sinks=sinks, dead_letters=Memory())


def test_letters_enter_where_the_memory_has_to_see_them(tmp_path: Path) -> None:
    given, cost = b'{"id": 1, "total": 2.0}', {"price": price(tmp_path)}
    behind = orders(lambda route: route.idempotent(body.id, name="once").filter(body.id > 0).enrich(cost))
    assert entering(behind, given) == ["intake.once"]
    keeps = orders(lambda route: route.idempotent(body.id, remember_failed=True).enrich(cost))
    assert entering(keeps, given) == ["intake.enrich"]
    tapped = Route("intake", Memory([], ORDER)).idempotent(body.id).tap("seen").enrich(cost).to("out")
    copies = App("shop", tapped, sinks={"seen": Memory(), "out": Memory()}, dead_letters=Memory())
    assert entering(copies, given) == ["intake.enrich"]
    before = orders(lambda route: route.enrich(cost).idempotent(body.id))
    assert entering(before, given) == ["intake.enrich"]


def test_a_receiver_between_rewritten_bodies_remembers_who_comes_again(tmp_path: Path) -> None:
    failing = {"price": price(tmp_path)}
    app = orders(
        lambda route: route.filter(body.id > 0)
        .translate({"key": body.id, "total": body.total}, name="first")
        .idempotent(body.key, name="once")
        .translate({"total": body.total})
        .enrich(failing)
    )
    given = b'{"id": 1, "total": 2.0}'
    assert entering(app, given) == ["intake.first"]
    (entry,) = app.plan.entries
    runner = Runner(app.plan)
    dead = runner.batch(0.0, [(entry, Message("m0", given))]).dead
    (tmp_path / "mended").touch()
    assert len(reference.replay(app.plan, dead, into=runner).channels["out"]) == 1
    assert runner.batch(1.0, [(entry, Message("m1", given))]).filtered == {"intake.once": 1}


def test_a_letter_does_not_come_twice_to_a_receiver_that_has_kept_its_key(tmp_path: Path) -> None:
    app = orders(
        lambda route: route.idempotent(body.id, name="forgets")
        .idempotent(body.total > 1, remember_failed=True, name="keeps")
        .enrich({"price": price(tmp_path)}, name="price")
    )
    given = b'{"id": 1, "total": 2.0}'
    (entry,) = app.plan.entries
    runner = Runner(app.plan)
    dead = runner.batch(0.0, [(entry, Message("m0", given))]).dead
    (tmp_path / "mended").touch()
    replayed = reference.replay(app.plan, dead, into=runner)
    assert (len(replayed.channels["out"]), replayed.filtered) == (1, {})


def test_a_body_that_cannot_be_decoded_is_left_out_until_it_is_corrected() -> None:
    app = orders(lambda route: route.filter(body.total > 0))
    (dead,) = reference.run(app.plan, [b'{"id": 1, "total": "much"}']).dead
    known = outlook(app.plan, [Letter("x", dead)], "step")
    assert (known.taken, len(known.left_out), known.messages) == ((), 1, 0)
    mended = corrected(Letter("x", dead), b'{"id": 1, "total": 3.0}')
    known = outlook(app.plan, [mended], "step")
    assert (len(known.taken), list(known.places)) == (1, [("intake.decode", "WrongType", "the start of intake")])
    (message,) = reference.replay(app.plan, [mended.dead]).channels["out"]
    assert (message.raw, message.id) == (b'{"id": 1, "total": 3.0}', dead.message.id)
