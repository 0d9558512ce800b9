"""penstock bench, as a user types it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.bench import choice, inputs, rundirectory
from penstock.bench.peers import PEERS
from penstock.bench.schedule import FULL, QUICK
from penstock.bench.watch import State, duration
from penstock.bench.workload import WORKLOADS
from penstock.cli import bench, bench_progress
from penstock.cli.main import app, main
from penstock.errors import BadBenchmark
from tests.bench.test_harness import FakeMessages, FakePeer


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Peers that start at once and messages that are made at once."""
    monkeypatch.chdir(tmp_path)
    for name in PEERS:
        monkeypatch.setitem(PEERS, name, FakePeer(name, reason=None if name == "penstock" else "there is no mvn"))
    monkeypatch.setattr(inputs, "Messages", FakeMessages)
    return tmp_path


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["bench", *arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def mistake(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    monkeypatch.setattr(sys, "argv", ["penstock", "bench", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    return capsys.readouterr().err


def test_list_shows_workloads_and_why_a_peer_cannot_run(fakes: Path) -> None:
    said = run("list")
    assert all(name in said for name in WORKLOADS)
    assert "content-based router: five branches" in said
    assert "a fake: cannot run here: there is no mvn" in said


def test_run_measures_and_reports(fakes: Path) -> None:
    options = ("--workloads", "RT-3-?", "--forks", "1", "--warmup", "0", "--iterations", "2", "--messages", "50")
    said = run("run", *options, "--cores", "1")
    assert "camel is left out: there is no mvn" in said
    assert "RT-3-A on penstock: " in said
    assert "missing  RT-1-A: at least 3 x Camel: not both are measured" in said
    name = rundirectory.run_names(Path("build/bench"))[0]
    assert f"report: build/bench/runs/{name}/report/index.html" in said
    assert Path(f"build/bench/runs/{name}/report/index.html").exists()
    assert "report: " in run("report")
    assert "report: " in run("report", name)
    again = run("run", "--resume", name)
    assert "penstock: " not in again


def test_data_makes_the_messages_of_a_run(fakes: Path) -> None:
    Path("build/bench").mkdir(parents=True)
    said = run("data", "--workloads", "BL,MDS-2-100", "--messages", "300")
    assert "orders" in said
    assert "300 messages" in said
    assert "sequences-100" in said


def test_ctrl_c_says_how_to_go_on(fakes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bench, "_measure", interrupted)
    said = run("run", "--workloads", "BL", "--directory", "elsewhere", code=130)
    name = rundirectory.run_names(Path("elsewhere"))[0]
    assert f"go on with: penstock bench run --resume {name} --directory elsewhere" in said


def test_a_resumed_run_keeps_its_settings(fakes: Path) -> None:
    said = run("run", "--resume", "x", "--forks", "2", code=2)
    assert "--resume takes the settings of its run" in " ".join(said.replace("│", " ").split())


def test_unknown_names_are_refused_with_the_known_ones(
    fakes: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = mistake(monkeypatch, capsys, "run", "--workloads", "RT-1-X")
    assert said.startswith("BadBenchmark: there is no workload 'RT-1-X'\n  fix  did you mean 'RT-1-")
    said = mistake(monkeypatch, capsys, "run", "--peers", "camle")
    assert said.startswith(
        "BadBenchmark: there is no peer 'camle'\n  fix  did you mean 'camel'? known: camel, duckdb, "
    )
    assert "there is no run" in mistake(monkeypatch, capsys, "report")
    assert "there is no run" in mistake(monkeypatch, capsys, "run", "--resume", "yesterday")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--users", "0..x"), "--users 0..x: '0..x' is no number or range\n  fix  write numbers from 0 to 11"),
        (("--batch", "3..1"), "--batch 3..1: '3..1' is not inside 0..20"),
        (("--size", "0"), "--size 0: '0' is not inside 1..20"),
        (("--cores", "9999"), "--cores 9999: '9999' is not inside 1.."),
        (("--size", ","), "--size has no number"),
    ],
)
def test_bad_ranges_are_refused(
    arguments: tuple[str, ...], text: str, fakes: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert text in mistake(monkeypatch, capsys, "run", *arguments)


def test_numbers_and_names_are_read() -> None:
    assert choice.numbers("1..3, 7", "--size", 1, 20) == (1, 2, 3, 7)
    assert choice.numbers(None, "--size", 1, 20) is None
    assert choice.names("RT-1-?,BL", WORKLOADS, "workload") == ("BL", "RT-1-A", "RT-1-B", "RT-1-C")
    assert choice.names(None, WORKLOADS, "workload") == ()
    with pytest.raises(BadBenchmark):
        choice.names("bl", WORKLOADS, "workload")


def test_chosen_workloads_have_the_scale_factors_that_are_asked_for() -> None:
    chosen = bench._settings(False, "RT-1-A", None, "0..2", None, None, None, None)
    assert (chosen.users, chosen.batch, chosen.size, chosen.swept) == ((0, 1, 2), (), (), True)
    everything = bench._settings(False, None, None, None, None, None, None, None)
    assert (everything.users, everything.size, everything.swept) == (FULL.users, FULL.size, False)
    quick = bench._settings(True, None, None, None, None, None, None, "spaced,compact", forks=2)
    assert (quick.messages, quick.budget, quick.forks) == (QUICK.messages, QUICK.budget, 2)
    assert (everything.spellings, quick.spellings) == (("spaced",), ("spaced", "compact"))


def test_a_terminal_shows_what_is_done_and_what_comes_next(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench_progress, "is_terminal", lambda: True)
    with bench_progress.BenchProgress() as progress:
        assert progress.bar is not None
        progress.note("camel is left out: [there] is no mvn")
        progress.show(State(3, 10, "BL on camel", "BL on python", 130.0))
        with progress.bar.console.capture() as captured:
            for one in progress.bar.get_renderables():
                progress.bar.console.print(one)
    said = captured.get()
    assert "3/10 about 2 min left" in said
    assert "now   BL on camel" in said
    assert "then  BL on python" in said
    assert "camel is left out: [there] is no mvn" in capsys.readouterr().err


@pytest.mark.parametrize(("seconds", "text"), [(4.2, "4 s"), (89, "89 s"), (600, "10 min"), (11_100, "3 h 05 min")])
def test_durations_are_written_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text
