"""Every system that is here starts, keeps what it has acknowledged, and ends; the others say what they lack."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from penstock.bench.log import comparing
from penstock.bench.log.comparing import PUBLISHERS, STREAM, WAITING
from penstock.bench.log.peers import PEERS
from penstock.bench.log.peers.base import MODES, Peer
from penstock.bench.log.publishers import Timed, streaming, waiting
from penstock.bench.log.samples import Samples


def here(name: str) -> Peer:
    peer = PEERS[name]
    if lacking := peer.missing():
        pytest.skip(lacking)
    return peer


@pytest.mark.parametrize("name", PEERS)
def test_all_that_a_system_acknowledges_can_be_read_back(name: str, tmp_path: Path) -> None:
    peer = here(name)
    with peer.serve(tmp_path / name, "fsynced" if "fsynced" in peer.modes else "written") as serving:
        timed = asyncio.run(waiting(serving, "waits", 4, 32, 0.05, check=True))
        assert timed.messages >= 4
        assert 0 < timed.wait(0.5) <= timed.wait(0.99)
        if peer.streams:
            assert asyncio.run(streaming(serving, "streams", 32, 0.05, check=True)).messages >= 1000
    assert peer.version()


@pytest.mark.parametrize("name", PEERS)
def test_a_system_has_a_mode_or_says_why_not(name: str) -> None:
    peer = PEERS[name]
    assert {*peer.modes, *peer.lacks} == set(MODES)
    assert not {*peer.modes} & {*peer.lacks}


def test_a_comparison_notes_every_sample_and_what_was_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    gone = replace(PEERS["redis"], missing=lambda: "Redis has no server here: install one")
    monkeypatch.setitem(PEERS, "redis", gone)
    samples = Samples(tmp_path / "samples.jsonl")
    said: list[str] = []
    comparing.measure(samples, tmp_path / "work", ["penstock", "redis", "kafka"][:2], ["written"], rounds=1,
                      seconds=0.02, say=said.append, payloads=(32,))  # fmt: skip
    assert {(one.what, one.side, one.setting) for one in samples.all} == {
        (WAITING, "penstock", 1), (WAITING, "penstock", PUBLISHERS), (STREAM, "penstock", 1),
    }  # fmt: skip
    assert [one.reason for one in samples.absent] == ["Redis has no server here: install one"]
    assert any("Penstock, 32 B, round 1 of 1" in text for text in said)
    assert not (tmp_path / "work").exists()


def test_a_wait_is_the_one_that_a_part_did_not_exceed() -> None:
    timed = Timed(100, 1.0, tuple(number / 100 for number in range(1, 101)))
    assert timed.wait(0.5) == 0.51
    assert timed.wait(0.99) == 1.0
