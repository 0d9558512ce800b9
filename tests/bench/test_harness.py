"""The harness, with processes that follow the protocol or break it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.bench import rundirectory
from penstock.bench.harness import amounts, measure
from penstock.bench.inputs import Inputs, Messages
from penstock.bench.peers.base import Say, on_cores
from penstock.bench.process import Result
from penstock.bench.rundirectory import FAILED, MISSING, RIGHT, WRONG, Run
from penstock.bench.schedule import Amount, Cell, Settings
from penstock.bench.timing import verify
from penstock.bench.watch import State, Watch
from penstock.errors import PenstockError

FAKE = Path(__file__).with_name("fake_peer.py")


@dataclass(frozen=True)
class FakePeer:
    name: str
    one_by_one: bool = False
    factors: frozenset[str] = frozenset({"users", "batch", "size"})
    reason: str | None = None
    title: str = "a fake"

    def availability(self) -> str | None:
        return self.reason

    def prepare(self, say: Say) -> str | None:
        return None

    def command(self, arguments: Path) -> list[str]:
        return [sys.executable, str(FAKE), self.name, str(arguments)]

    def environment(self, cores: int) -> dict[str, str]:
        return {}


class FakeMessages(Messages):
    """Lines with a number; the right answer of every workload is the input."""

    def files(self, wanted: Amount) -> Inputs:
        if wanted.model == "cars":
            raise PenstockError("nobody drives")
        path = self.directory / f"{wanted.model}-{wanted.messages}.jsonl"
        path.write_text("".join(f'{{"n":{n}}}\n' for n in range(wanted.messages)))
        return Inputs((str(path),), wanted.messages, path.stat().st_size)

    def differences(
        self, workload: str, inputs: Sequence[str], outputs: Path, tables: Mapping[str, Sequence[str]]
    ) -> list[str]:
        right = Path(inputs[0]).read_text() == (outputs / "out.jsonl").read_text()
        return [] if right else ["out: a message is missing"]


class Screen:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.states: list[State] = []

    def watch(self) -> Watch:
        return Watch(self.lines.append, self.states.append)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def settings(*peers: str, workloads: tuple[str, ...] = ("BL", "RT-1-A", "RT-1-B"), **changes: object) -> Settings:
    usual = {"cores": (1,), "forks": 2, "warmup": 1, "iterations": 2, "messages": 20, "checked": 10, "limit": 20.0}
    return Settings(workloads, peers, **{**usual, **changes})  # type: ignore[arg-type]


def go(directory: Path, asked: Settings | Run, *peers: FakePeer) -> tuple[Run, Screen]:
    run = rundirectory.create(directory, asked) if isinstance(asked, Settings) else asked
    screen = Screen()
    known = {peer.name: peer for peer in peers} or {name: FakePeer(name) for name in run.settings.peers}
    measure(run, known, FakeMessages(directory), screen.watch())
    return run, screen


def statuses(run: Run) -> dict[tuple[str, str], str]:
    return {key: verdict.status for key, verdict in run.verdicts().items()}


def test_every_fork_of_every_cell_is_checked_timed_and_stored(tmp_path: Path) -> None:
    run, screen = go(tmp_path, settings("good", "other"))
    assert set(statuses(run).values()) == {RIGHT}
    samples = run.samples()
    assert len(samples) == 2 * 3 * 2 * 3
    first = samples[0]
    assert (first.peer, first.workload, first.fork, first.iteration, first.warmup) == ("good", "BL", 0, 0, True)
    assert (first.messages, first.delivered, first.seconds, first.peer_version) == (20, 20, 0.5, "1.0")
    assert first.load_seconds == 0.01
    assert min(first.fork_seconds, first.work_seconds, first.verify_seconds) > 0
    assert "BL on good, fork 1 of 2: 100 messages/s" in screen.text
    assert not (run.path / "check" / "good" / "BL").exists()


def test_peers_alternate_and_every_second_fork_goes_backwards(tmp_path: Path) -> None:
    run, _ = go(tmp_path, settings("good", "other", workloads=("BL",), warmup=0, iterations=1))
    assert [(sample.peer, sample.fork) for sample in run.samples()] == [
        ("good", 0), ("other", 0), ("other", 1), ("good", 1),
    ]  # fmt: skip


def test_a_wrong_answer_is_not_timed_and_is_kept_for_a_look(tmp_path: Path) -> None:
    run, screen = go(tmp_path, settings("wrong"))
    verdict = run.verdicts()["wrong", "RT-1-A"]
    assert verdict.status == WRONG
    assert verdict.reason.startswith("out: a message is missing (its answers: ")
    assert (run.path / "check" / "wrong" / "RT-1-A" / "out.jsonl").exists()
    assert {sample.workload for sample in run.samples()} == {"BL", "RT-1-B"}
    assert "check RT-1-A on wrong: wrong: out: a message is missing" in screen.text


def test_a_workload_that_a_peer_does_not_have_is_missing_with_its_reason(tmp_path: Path) -> None:
    run, _ = go(tmp_path, settings("partial"))
    assert statuses(run)["partial", "RT-1-B"] == MISSING
    assert run.verdicts()["partial", "RT-1-B"].reason == "no branches"
    assert {sample.workload for sample in run.samples()} == {"BL", "RT-1-A"}


def test_a_peer_that_cannot_run_here_is_left_out_with_its_reason(tmp_path: Path) -> None:
    run, screen = go(tmp_path, settings("camel"), FakePeer("camel", reason="there is no mvn"))
    assert "camel is left out: there is no mvn" in screen.text
    assert run.verdicts()["camel", "BL"].reason == "there is no mvn"
    assert run.samples() == []


def test_a_process_that_dies_costs_its_cell_only(tmp_path: Path) -> None:
    run, screen = go(tmp_path, settings("crashing"))
    failure = run.failures()["crashing", Cell("RT-1-A", cores=1)]
    assert failure.reason.startswith("ended with code 3: out of memory (see ")
    assert failure.fork == 0
    assert screen.text.count("failed: ended with code 3") == 1
    assert {(sample.workload, sample.fork) for sample in run.samples()} == {
        ("BL", 0), ("BL", 1), ("RT-1-B", 0), ("RT-1-B", 1),
    }  # fmt: skip


def test_a_peer_that_says_an_error_is_quoted(tmp_path: Path) -> None:
    run, _ = go(tmp_path, settings("failing", workloads=("BL",)))
    assert run.failures()["failing", Cell("BL", cores=1)].reason == "it does not want to"


def test_a_fork_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    run, _ = go(tmp_path, settings("hanging", limit=1.5, forks=1))
    assert run.failures()["hanging", Cell("RT-1-A", cores=1)].reason == "not done after 2 s, the time limit"
    assert {sample.workload for sample in run.samples()} == {"BL", "RT-1-B"}


def test_counts_that_change_from_one_iteration_to_the_next_are_a_failure(tmp_path: Path) -> None:
    run, _ = go(tmp_path, settings("uneven", workloads=("BL",)))
    assert run.samples() == []
    assert run.failures()["uneven", Cell("BL", cores=1)].reason == "its iterations deliver different counts"


def test_channels_of_a_load_balancer_may_change_places() -> None:
    turns = [{"route-1": 4, "route-2": 3, "route-3": 3}, {"route-1": 3, "route-2": 4, "route-3": 3}]
    result = Result(iterations=[{"messages": 10, "delivered": delivered} for delivered in turns])
    inputs = Inputs((), 10, 100)
    assert verify("LB-3", result, inputs) is None
    assert verify("RT-1-B", result, inputs) == "its iterations deliver different counts"


def test_messages_that_cannot_be_made_are_a_failure(tmp_path: Path) -> None:
    run, _ = go(tmp_path, settings("good", workloads=("cars-normal",)))
    assert "nobody drives" in run.verdicts()["good", "cars-normal"].reason
    assert statuses(run)["good", "cars-normal"] == FAILED


def test_a_stopped_run_goes_on_with_what_is_not_stored(tmp_path: Path) -> None:
    run, _ = go(tmp_path, settings("good"))
    file = run.path / "samples.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:-1]) + lines[-1][:40])
    again, screen = go(tmp_path, rundirectory.reopen(tmp_path, run.name))
    assert screen.states[-1].total == 1
    assert len(again.samples()) == len(lines)
    assert not any("check" in line for line in screen.lines)


def test_a_quick_run_has_one_process_for_the_cells_of_a_peer(tmp_path: Path) -> None:
    run, _ = go(tmp_path, settings("good", "crashing", quick=True, forks=1, budget=60.0, users=(0, 1)))
    by_peer = {name: [s for s in run.samples() if s.peer == name and s.iteration == 0] for name in ("good", "crashing")}
    assert [(sample.workload, sample.users) for sample in by_peer["good"]] == [
        ("BL", None), ("RT-1-A", None), ("RT-1-B", None), ("RT-1-A", 1), ("RT-1-A", 2),
    ]  # fmt: skip
    assert {sample.workload for sample in by_peer["crashing"]} == {"BL", "RT-1-B"}
    assert len(list((run.path / "logs").glob("good-*.log"))) == 2


def test_a_quick_run_leaves_out_what_it_has_no_time_for(tmp_path: Path) -> None:
    run, _ = go(tmp_path, settings("hanging", quick=True, forks=1, budget=4.0))
    assert run.failures()["hanging", Cell("RT-1-A", cores=1)].reason == "left out: the time of a quick run was over"
    assert run.failures()["hanging", Cell("RT-1-B", cores=1)].reason == "left out: the time of a quick run was over"
    assert {sample.workload for sample in run.samples()} == {"BL"}


def test_a_peer_that_cannot_start_is_not_started_for_every_workload(tmp_path: Path) -> None:
    run, _ = go(tmp_path, settings("unable"))
    assert set(statuses(run).values()) == {FAILED}
    assert (run.path / "logs" / "unable-check.log").read_text().count("there is no Java here") == 1


def test_scale_factors_go_to_peers_that_have_them(tmp_path: Path) -> None:
    asked = settings("good", "other", workloads=("BL", "RT-1-A"), users=(0, 2), size=(1,), forks=1)
    run, _ = go(tmp_path, asked, FakePeer("good"), FakePeer("other", factors=frozenset({"size"})))
    cells = {(s.peer, s.workload, s.users, s.size) for s in run.samples() if s.users or s.size}
    assert cells == {
        ("good", "RT-1-A", 1, None), ("good", "RT-1-A", 4, None), ("good", "BL", None, 1),
        ("good", "RT-1-A", None, 1), ("other", "BL", None, 1), ("other", "RT-1-A", None, 1),
    }  # fmt: skip


def test_the_messages_of_a_run_are_listed_once() -> None:
    asked = settings("good", workloads=("BL", "RT-1-A", "MT-3-A", "MDS-1-A"), messages=1000)
    peers = [FakePeer("good"), FakePeer("slow", one_by_one=True)]
    wanted = [(one.model, one.messages, one.spelling) for one in amounts(asked, peers)]
    assert wanted == [
        ("orders", 10, "mixed"), ("customers", 1500, "mixed"),
        ("orders", 1000, "spaced"), ("customers", 1500, "spaced"), ("orders", 125, "spaced"),
    ]  # fmt: skip


def test_a_run_with_two_spellings_measures_plain_workloads_in_both(tmp_path: Path) -> None:
    asked = settings("good", workloads=("BL", "RT-1-A"), size=(1,), forks=1, spellings=("spaced", "compact"))
    run, _ = go(tmp_path, asked)
    assert {(s.workload, s.size, s.spelling) for s in run.samples()} == {
        ("BL", None, "spaced"), ("BL", None, "compact"), ("RT-1-A", None, "spaced"), ("RT-1-A", None, "compact"),
        ("BL", 1, "spaced"), ("RT-1-A", 1, "spaced"),
    }  # fmt: skip


def test_the_time_that_is_left_is_that_of_the_same_peers(tmp_path: Path) -> None:
    _, screen = go(tmp_path, settings("good", workloads=("BL",)))
    first, *_, last = (state for state in screen.states if not state.now.startswith("messages"))
    assert first.left is None
    assert (last.done, last.total) == (2, 3)
    assert last.left is not None
    assert 0 < last.left < 20


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores are chosen on Linux only")
def test_a_process_gets_the_cores_that_it_was_promised() -> None:
    mine = os.sched_getaffinity(0)
    with on_cores(1):
        said = subprocess.run(
            [sys.executable, "-c", "import os; print(len(os.sched_getaffinity(0)))"], capture_output=True, text=True
        )
    assert said.stdout.strip() == "1"
    assert os.sched_getaffinity(0) == mine


def test_ctrl_c_ends_the_process_of_the_peer(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "from tests.bench.test_harness import go, settings\n"
        "go(Path(sys.argv[2]), settings('hanging', workloads=('RT-1-A',)))\n"
    )
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root / "src"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", program, str(root), str(tmp_path)]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.DEVNULL)
    jobs = wait_for(tmp_path, "runs/*/logs/hanging-RT-1-A-0.json")
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) != 0
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert str(jobs) not in listed


def wait_for(directory: Path, pattern: str) -> Path:
    for _ in range(200):
        found = list(directory.glob(pattern))
        if found:
            return found[0]
        time.sleep(0.1)
    raise AssertionError(f"no {pattern}")
