"""The metrics of EIPBench, on numbers that can be followed by hand."""

from __future__ import annotations

import math

import pytest

from penstock.bench.statistics import confidence_interval, student_quantile, throughput


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 63.657), (2, 9.925), (3, 5.841), (4, 4.604), (9, 3.250), (30, 2.750), (120, 2.617)]
)
def test_the_quantile_is_that_of_the_tables(freedom: int, quantile: float) -> None:
    assert student_quantile(freedom) == pytest.approx(quantile, abs=0.0006)


def test_another_level_has_another_quantile() -> None:
    assert student_quantile(4, 0.95) == pytest.approx(2.776, abs=0.0006)


def test_forks_count_the_same_however_many_iterations_they_have() -> None:
    found = throughput({0: [100.0, 200.0], 1: [250.0], 2: [300.0, 400.0]})
    assert found.mean == pytest.approx((150 + 250 + 350) / 3)
    assert found.sigma == pytest.approx(math.sqrt((100**2 + 0 + 100**2) / 3))
    assert found.interval == pytest.approx(9.925 * found.sigma / math.sqrt(3), rel=1e-4)
    assert (found.forks, found.iterations) == (3, 5)


def test_one_fork_is_judged_by_its_iterations() -> None:
    found = throughput({0: [100.0, 200.0, 300.0]})
    assert found.mean == 200
    assert found.sigma == pytest.approx(math.sqrt(2 * 100**2 / 3))
    assert found.interval == pytest.approx(9.925 * found.sigma / math.sqrt(3), rel=1e-4)


def test_a_single_measurement_says_nothing_about_its_precision() -> None:
    assert throughput({0: [100.0]}).interval is None
    assert confidence_interval(5.0, 1) is None


def test_median_and_spread_are_those_of_all_iterations() -> None:
    found = throughput({0: [100.0, 200.0], 1: [300.0]})
    assert (found.median, found.least, found.most) == (200, 100, 300)
    assert found.spread == 1.0
