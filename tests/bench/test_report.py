"""The report, from made-up samples."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.bench import rundirectory
from penstock.bench.peers import PEERS
from penstock.bench.report import write_report
from penstock.bench.report.figures import PLOTS, draw
from penstock.bench.report.questions import answers, human_bytes
from penstock.bench.report.results import Results, ratio
from penstock.bench.report.style import DARK, LIGHT
from penstock.bench.report.tables import cores, everything, spellings
from penstock.bench.report.targets import MET, MISSED, UNKNOWN, Target, targets
from penstock.bench.rundirectory import FAILED, MISSING, RIGHT, WRONG, Run, Verdict
from penstock.bench.samples import Sample
from penstock.bench.schedule import FULL, Cell, Settings, amount, default_workloads, schedule
from penstock.bench.workload import WORKLOADS
from tests.bench.test_samples import SAMPLE

RATES = {"penstock": 2.4e6, "camel": 4e5, "pyspark": 6e5, "python": 1.5e5, "duckdb": 3.2e6, "polars": 2.6e6}
SLOWER = {"RT-2-D": 9.0, "RT-5-B": 7.0, "RT-5-C": 5.0, "SP-A": 7.0, "SP-B": 5.0, "CE-A": 2.5}


def made_up(directory: Path, settings: Settings = FULL, seed: int = 7) -> Run:
    """A whole run: every peer has numbers for all but some cells."""
    noise = random.Random(seed)
    wanted = replace(settings, workloads=default_workloads(False), peers=tuple(PEERS))
    run = rundirectory.create(directory, wanted)
    for peer in PEERS:
        for name in wanted.workloads:
            run.add_verdict(_verdict(peer, name))
    verdicts = run.verdicts()
    for peer in PEERS.values():
        for cell in schedule(wanted):
            if verdicts[peer.name, cell.workload].status == RIGHT and cell.factors <= peer.factors:
                if peer.name == "camel" and (cell.size or 0) > 14:
                    run.add_failure("camel", cell, 0, "not done after 600 s, the time limit")
                else:
                    run.add_samples(_samples(run, peer.name, cell, noise))
    return run


def _verdict(peer: str, name: str) -> Verdict:
    if peer in ("duckdb", "polars") and name.startswith(("MDS-1", "LB", "JR", "SpAgg")):
        return Verdict(peer, name, MISSING, "it has no redelivery and no routes")
    if peer == "polars" and name == "RT-6-B":
        return Verdict(peer, name, WRONG, "out: 3 messages differ <first: 17>")
    if WORKLOADS[name].family == "cars" and peer != "penstock":
        return Verdict(peer, name, FAILED, "there are no messages cars")
    return Verdict(peer, name, RIGHT)


def _samples(run: Run, peer: str, cell: Cell, noise: random.Random) -> Iterable[Sample]:
    wanted = amount(cell, run.settings, PEERS[peer].one_by_one)
    size = 250 * 4 * 2 ** (cell.size - 1) if cell.size else 250
    rate = RATES[peer] / SLOWER.get(cell.workload, 1.0 + len(cell.workload) % 3 / 4) / (1 + size / 2000)
    rate *= 1.6 if (cell.users or 0) > 1 and peer == "camel" else 1.0
    rate *= cell.batch / (cell.batch + 20_000) if cell.batch and peer == "penstock" else 1.0
    for fork in range(run.settings.forks):
        drift = noise.gauss(1, 0.02)
        for iteration in range(run.settings.warmup + run.settings.iterations):
            warm = iteration >= run.settings.warmup
            found = rate * drift * noise.gauss(1, 0.015) * (1.0 if warm else 0.4)
            yield replace(
                SAMPLE, run=run.name, peer=peer, workload=cell.workload, users=cell.users, batch=cell.batch,
                size=cell.size, cores=cell.cores, messages=wanted.messages, bytes=wanted.messages * size, fork=fork,
                iteration=iteration, warmup=not warm, seconds=wanted.messages / found, delivered=wanted.messages,
            )  # fmt: skip


def small(directory: Path, rates: dict[tuple[str, Cell], float], **settings: object) -> Results:
    """A run with one sample for each of these."""
    names = tuple(dict.fromkeys(cell.workload for _, cell in rates)) or ("BL",)
    peers = tuple(dict.fromkeys(peer for peer, _ in rates)) or ("penstock",)
    run = rundirectory.create(directory, Settings(names, peers, **settings))  # type: ignore[arg-type]
    for (peer, cell), rate in rates.items():
        size = 1000 * 2 ** (cell.size - 1) if cell.size else 250
        run.add_samples([
            replace(
                SAMPLE, peer=peer, workload=cell.workload, users=cell.users, batch=cell.batch, size=cell.size,
                cores=cell.cores, messages=1000, bytes=1000 * size, seconds=1000 / rate, spelling=cell.spelling,
            )
        ])  # fmt: skip
    return Results(run)


def plain(rates: dict[tuple[str, str], float]) -> dict[tuple[str, Cell], float]:
    return {(peer, Cell(name)): rate for (peer, name), rate in rates.items()}


def found(results: Results, start: str) -> Target:
    return next(target for target in targets(results) if target.text.startswith(start))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, str]:
    few = replace(FULL, users=(0, 1, 3), batch=(0, 10, 20), size=(1, 4, 20), forks=2, iterations=2)
    run = made_up(tmp_path_factory.mktemp("report"), few)
    report = write_report(run)
    assert report.path == run.path / "report" / "index.html"
    return run, report.path.read_text(encoding="utf-8")


def test_the_page_and_all_figures_are_written(written: tuple[Run, str]) -> None:
    run, _ = written
    names = {path.name for path in (run.path / "report").iterdir()}
    assert names == {"index.html"} | {f"{plot.name}.{kind}" for plot in PLOTS for kind in ("png", "svg")}
    assert all(path.stat().st_size > 5000 for path in (run.path / "report").iterdir())


def test_the_page_needs_nothing_else(written: tuple[Run, str]) -> None:
    _, text = written
    assert "<script" not in text
    assert "<link" not in text
    assert not re.findall(r'(?:src|srcset|href)="(?!data:image/svg|#)', text)
    assert "prefers-color-scheme: dark" in text


def test_the_numbers_of_the_paper_stand_beside_ours(written: tuple[Run, str]) -> None:
    _, text = written
    for number in ("300,837", "176,319", "115,859", "70,585", "1,995", "172,544"):
        assert number in text
    assert "Java/AC (early-out), paper" in text


def test_what_is_missing_is_said_and_never_zero(written: tuple[Run, str]) -> None:
    _, text = written
    assert '<td class="absent" title="it has no redelivery and no routes">missing</td>' in text
    assert '<td class="absent" title="out: 3 messages differ &lt;first: 17&gt;">WRONG</td>' in text
    assert not re.search(r">0<(?!/b)", text)
    assert "RT-1-A on Apache Camel at 20: failed" in text
    assert "not done after 600 s, the time limit" in text


def test_a_run_without_samples_has_a_report(tmp_path: Path) -> None:
    run = rundirectory.create(tmp_path, Settings(("BL", "RT-1-A"), ("penstock", "camel")))
    run.add_verdict(Verdict("camel", "BL", FAILED, "there is no mvn"))
    report = write_report(run)
    text = report.path.read_text(encoding="utf-8")
    assert {target.status for target in report.targets} == {UNKNOWN}
    assert '<td class="absent" title="there is no mvn">failed</td>' in text
    assert text.count("missing: this run measured nothing of it") == len(PLOTS)
    assert list(report.path.parent.glob("*.png")) == []


def test_the_same_samples_give_the_same_figures(tmp_path: Path) -> None:
    results = small(tmp_path, {("penstock", Cell("RT-1-A", batch=n)): 10.0 * n for n in (1, 2)})
    first = {drawn.plot.name: drawn for drawn in draw(results, tmp_path)}
    file = tmp_path / "figure-6-batch.svg"
    before = file.read_bytes()
    second = {drawn.plot.name: drawn for drawn in draw(results, tmp_path)}
    assert file.read_bytes() == before
    assert first["figure-6-batch"].dark == second["figure-6-batch"].dark
    assert DARK.colour("penstock") in str(first["figure-6-batch"].dark)
    assert LIGHT.paper not in str(first["figure-6-batch"].dark)


def test_the_numbers_of_a_workload_stand_in_a_row(tmp_path: Path) -> None:
    results = small(tmp_path, plain({("penstock", "BL"): 4000.0, ("camel", "BL"): 600.0}))
    row = everything(results, "baseline").rows[0]
    assert [field.text for field in row] == ["BL", "4,000", "600", "6.67 ×", "–"]


def test_ratios_are_those_of_the_medians(tmp_path: Path) -> None:
    results = small(
        tmp_path,
        plain({
            ("penstock", "BL"): 4000.0, ("penstock", "RT-1-A"): 3000.0, ("camel", "RT-1-A"): 600.0,
            ("duckdb", "RT-1-A"): 1000.0, ("polars", "RT-1-A"): 4000.0,
        }),
    )  # fmt: skip
    row = everything(results, "routing").rows[0]
    assert row[1].small == "0.75 BL"
    assert [(field.text, field.small) for field in row[-2:]] == [("5.00 ×", ""), ("0.75 ×", "Polars")]
    assert ratio(1.0, None) is None


def test_targets_are_met_missed_or_missing(tmp_path: Path) -> None:
    results = small(
        tmp_path,
        plain({
            ("penstock", "RT-1-A"): 3000.0, ("camel", "RT-1-A"): 1000.0, ("polars", "RT-1-A"): 7000.0,
            ("penstock", "RT-1-B"): 2699.0, ("camel", "RT-1-B"): 901.0, ("penstock", "RT-1-C"): 2700.0,
        }),
    )  # fmt: skip
    assert found(results, "RT-1-A: at least 3 x Camel") == Target("RT-1-A: at least 3 x Camel", "3.00", MET)
    assert found(results, "RT-1-B: at least 3 x Camel").status == MISSED
    assert found(results, "RT-1-C: at least 3 x Camel").status == UNKNOWN
    assert found(results, "RT-1-A: at least 0.5 of the best vectorised engine (polars)").status == MISSED
    assert found(results, "RT-1-B: at least 0.9 of RT-1-A").status == MISSED
    assert found(results, "RT-1-C: at least 0.9 of RT-1-A").status == MET
    assert found(results, "MDS-1-F").status == UNKNOWN


def test_targets_say_what_a_pattern_takes_from_the_baseline(tmp_path: Path) -> None:
    rates = {("penstock", "BL"): 5000.0, ("camel", "BL"): 2000.0, ("penstock", "RT-1-A"): 4000.0,
             ("camel", "RT-1-A"): 1000.0, ("penstock", "MT-1-A"): 5000.0, ("camel", "MT-1-A"): 1000.0}  # fmt: skip
    results = small(tmp_path, plain(rates))
    assert found(results, "RT-1-A: at least 3").found == "4.00; relative to BL 1.60; time beyond BL 10.00"
    assert found(results, "MT-1-A: at least 3").found == "5.00; relative to BL 2.00"


def test_sizes_have_to_be_within_a_factor_of_two(tmp_path: Path) -> None:
    def sizes(last: float, few: int = 0) -> Target:
        rates = {("penstock", Cell("RT-1-A", size=n)): 64000.0 / 2**n for n in range(1, 14 - few)}
        return found(
            small(tmp_path, {**rates, ("penstock", Cell("RT-1-A", size=14)): 64000.0 / 2**14 * last}), "RT-1-A: MB/s"
        )

    assert sizes(0.51) == Target("RT-1-A: MB/s of sizes 1 to 14 within a factor of 2", "1.96", MET)
    assert sizes(0.49).status == MISSED
    assert sizes(0.51, few=2).status == UNKNOWN
    assert sizes(0.51, few=2).found == "1.96, but no number for size 12, 13"


def test_the_largest_message_passes_fails_or_was_not_sent(tmp_path: Path) -> None:
    cell = Cell("RT-1-A", size=20)
    passed = found(small(tmp_path, {("penstock", cell): 0.5}), "RT-1-A: size 20 passes")
    assert (passed.status, passed.found) == (MET, "524 MB at 262 MB/s")
    results = small(tmp_path, plain({("penstock", "RT-1-A"): 10.0}))
    assert found(results, "RT-1-A: size 20 passes").status == UNKNOWN
    results.run.add_failure("penstock", cell, 0, "out of memory")
    failed = found(Results(results.run), "RT-1-A: size 20 passes")
    assert (failed.status, failed.found) == (MISSED, "out of memory")


def test_questions_are_answered_from_the_numbers(tmp_path: Path) -> None:
    rates: dict[tuple[str, Cell], float] = {
        **plain({("penstock", "RT-1-A"): 1000.0, ("penstock", "RT-1-C"): 900.0, ("camel", "RT-1-A"): 100.0}),
        **{("camel", Cell("RT-1-A", users=n)): 100.0 * rate for n, rate in ((1, 1.0), (2, 1.8), (4, 2.0), (8, 2.01))},
        **{("penstock", Cell("RT-1-A", batch=n)): 50.0 * n for n in (1, 16)},
        **{("penstock", Cell("RT-1-A", size=n)): 4000.0 / 2**n for n in (1, 11)},
    }
    said = {answer.name: answer for answer in answers(small(tmp_path, rates))}
    assert said["Q1"].sentences == (
        "Penstock: with the complex condition (RT-1-C) it reaches 90% of the simple router (RT-1-A).",
        "Not measured: Apache Camel.",
    )
    assert said["Q1"].paper == "The paper: 56% with Java/AC, 65% with TIP/AC."
    assert said["Q2"].sentences == ("Not measured: Penstock, Apache Camel.",)
    assert said["Q4"].sentences[0] == (
        "Penstock: from 1.0 kB to 1.0 MB per message it moves 2 to 2 MB/s, a factor of 1.0."
    )
    assert said["Q5"].sentences[0] == (
        "Apache Camel: the best number of users reaches 2.01 x one user; it is saturated with 4 users."
    )
    assert said["Q6"].sentences[0] == "Penstock: batches of 16 reach 16.0 x batches of 1."


def test_peers_that_deliver_different_counts_are_named(tmp_path: Path) -> None:
    results = small(tmp_path, plain({("penstock", "BL"): 10.0, ("camel", "BL"): 10.0}))
    assert results.differing_counts() == []
    results.run.add_samples([replace(SAMPLE, workload="BL", users=None, peer="python", delivered=999)])
    assert Results(results.run).differing_counts() == ["BL 2 cores: 1,000 on camel and penstock, 999 on python"]


def test_spellings_are_compared_where_there_are_both(tmp_path: Path) -> None:
    rates = {("penstock", Cell(name)): spaced for name, spaced in (("BL", 90.0), ("RT-1-A", 70.0))}
    rates |= {("penstock", Cell(name, spelling="compact")): 100.0 for name in ("BL", "RT-1-A")}
    results = small(tmp_path / "both", rates, spellings=("spaced", "compact"))
    table = spellings(results)
    assert table is not None
    assert [(row[0].text, row[1].text) for row in table.rows] == [("BL", "0.90 ×"), ("RT-1-A", "0.70 ×")]
    text = "every workload: JSON with spaces at least 0.8 of compact JSON"
    assert found(results, text) == Target(text, "RT-1-A 0.70", MISSED)
    alone = small(tmp_path / "alone", {("penstock", Cell("BL")): 90.0})
    assert spellings(alone) is None
    assert found(alone, text) == Target(text, "0 of 1 workloads are measured", UNKNOWN)


def test_the_slowest_beside_camel_is_named(tmp_path: Path) -> None:
    text = "no workload slower than Camel"
    rates = {("penstock", "BL"): 300.0, ("camel", "BL"): 100.0, ("penstock", "LB-2"): 150.0, ("camel", "LB-2"): 100.0}
    assert found(small(tmp_path / "met", plain(rates)), text) == Target(text, "least 1.50, LB-2", MET)
    slower = {**rates, ("penstock", "LB-2"): 50.0}
    assert found(small(tmp_path / "missed", plain(slower)), text) == Target(text, "LB-2 0.50", MISSED)


def test_cores_are_compared_where_there_are_several(tmp_path: Path) -> None:
    rates = {("penstock", Cell("BL", cores=1)): 1000.0, ("penstock", Cell("BL", cores=2)): 1900.0}
    results = small(tmp_path, rates, cores=(1, 2))
    assert results.rate("penstock", "BL") == pytest.approx(1900.0)
    table = cores(results)
    assert table is not None
    assert [field.text for field in table.rows[0]] == ["BL", "1.90 ×"]


@pytest.mark.parametrize(("count", "text"), [(980, "980 B"), (1024, "1.0 kB"), (262_144, "262 kB"), (5.4e8, "540 MB")])
def test_bytes_are_written_for_people(count: float, text: str) -> None:
    assert human_bytes(count) == text
