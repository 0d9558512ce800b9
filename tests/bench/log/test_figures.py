"""The paper's figures over few messages, and the report that is made of their samples."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from penstock.bench.log import reading, writing
from penstock.bench.log.__main__ import main
from penstock.bench.log.comparing import PUBLISHERS, STREAM, WAITING
from penstock.bench.log.goals import goals
from penstock.bench.log.peers import PEERS
from penstock.bench.log.report import show, write_page
from penstock.bench.log.samples import Absent, Sample, Samples
from penstock.errors import BadMachine
from penstock.log import Acknowledge, Frame, Log, Settings


def test_figures_on_writing_have_a_point_for_every_payload_and_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "FIRST_BATCHES", (64, 1472))
    monkeypatch.setattr(writing, "SECOND_BATCHES", (4096,))
    samples = Samples(tmp_path / "samples.jsonl")
    writing.measure(samples, tmp_path / "work", rounds=1, messages=30, say=lambda text: None)
    for what in (writing.WRITE, writing.LAST_LEVEL):
        assert samples.values("payload", what=what, side=writing.LEVELS) == list(writing.PAYLOADS)
        assert samples.values("payload", what=what, side=writing.ALONE) == list(writing.PAYLOADS)
    assert samples.values("setting", what=writing.BATCH_1) == [64, 1472]
    assert Samples.read(samples.path).all == samples.all


def test_a_log_that_loses_messages_fails_the_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Log, "append", _forgetful(Log.append))
    with pytest.raises(BadMachine, match="does not hold what was pushed"):
        writing.write(tmp_path / "log", Settings(levels=()), Acknowledge.WRITTEN, [b"a", b"b", b"c"])


def _forgetful(append):  # type: ignore[no-untyped-def]
    def other(self: Log, topic: str, partition: int, frame: Frame, *more: object):  # type: ignore[no-untyped-def]
        kept = Frame.pack([b"x"]) if frame.values[0].as_py() == b"b" else frame
        return append(self, topic, partition, kept, *more)

    return other


def test_figures_on_reading_are_answered_by_the_level_that_they_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PAYLOADS", (512,))
    samples = Samples(tmp_path / "samples.jsonl")
    reading.measure(samples, tmp_path / "work", rounds=1, reads=4, say=lambda text: None)
    assert set(samples.values("side", what=reading.READ)) == set(reading.SIDES)
    assert set(samples.values("side", what=reading.ROUND_TRIP)) == set(reading.SIDES)


@pytest.fixture
def samples(tmp_path: Path) -> Samples:
    """As of a run that measured everything: rates that are easy to see in a report."""
    found = Samples(tmp_path / "samples.jsonl")
    for payload in writing.PAYLOADS:
        for what in (writing.WRITE, writing.LAST_LEVEL):
            for mode in ("written", "fsynced"):
                found.add(Sample(what, writing.LEVELS, mode, payload, 0, 0, 6000, 1.0))
                found.add(Sample(what, writing.ALONE, mode, payload, 0, 0, 100, 1.0))
    for payload in writing.BATCH_PAYLOADS:
        for what in (writing.BATCH_1, writing.BATCH_2):
            for mode in (writing.WRITE, writing.LAST_LEVEL):
                found.add(Sample(what, writing.LEVELS, mode, payload, 1024, 0, 100, 1.0))
    for payload in reading.PAYLOADS:
        for place, side in enumerate(reading.SIDES):
            found.add(Sample(reading.READ, side, "", payload, 64, 0, 700 - 100 * place, 1.0))
            found.add(Sample(reading.ROUND_TRIP, side, "", payload, 1, 0, 10, 1.0, 0.001, 0.002))
    for name, rate in (("penstock", 3000), ("nats", 1000), ("redis", 4000)):
        for what, publishers in ((WAITING, 1), (WAITING, PUBLISHERS), (STREAM, 1)):
            found.add(Sample(what, name, "fsynced", 32, publishers, 0, rate, 1.0, 0.001, 0.002, f"{name} 1.0"))
    found.lack(Absent("all", "kafka", "", "Kafka needs Java"))
    return found


def test_goals_are_ratios_of_what_was_measured(samples: Samples) -> None:
    found = {goal.text: (goal.ratio, goal.status) for goal in goals(samples)}
    assert found["write, last level, 32 B, written: with levels by without"] == (60.0, "met")
    assert found["read, 32 B: level 1, same process by last level, not cached"] == (7.0, "MISSED")
    assert found["64 waiting publishers, 32 B, fsynced: Penstock by NATS JetStream"] == (3.0, "met")
    assert found["64 waiting publishers, 32 B, fsynced: Penstock by Redis streams"] == (0.75, "MISSED")
    assert not any("UDP" in text for text in found)


def test_a_report_is_made_of_samples_alone(samples: Samples, capsys: pytest.CaptureFixture[str]) -> None:
    again = Samples.read(samples.path)
    show(again, Console(width=200))
    said = capsys.readouterr().out
    assert all(text in said for text in ("Goals", "Writing, figure 12", "x60.0", "Redis streams", "Kafka needs Java"))
    page = write_page(again).read_text(encoding="utf-8")
    assert "Kafka needs Java" in page
    assert page.count("<figure") == 4
    names = ("figure-12-write", "figure-13-batch", "figure-14-15-read", "peers")
    pictures = {path.name for path in samples.path.parent.iterdir()}
    assert pictures >= {f"{name}.{ending}" for name in names for ending in ("png", "svg")}


def test_the_command_line_draws_a_report_again(samples: Samples, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--samples", str(samples.path)]) == 0
    assert "report.html" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["report"])
    assert "report needs --samples FILE" in capsys.readouterr().err


def test_colours_of_all_systems_differ() -> None:
    from penstock.bench.log.plots import _DARK, _LIGHT

    for theme in (_LIGHT, _DARK):
        assert len({theme.colour(name) for name in PEERS}) == len(PEERS)
