"""The metrics of EIPBench: equations 8 to 10, and median and spread beside them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

CONFIDENCE = 0.99


@dataclass(frozen=True, slots=True)
class Throughput:
    """What is known about one cell, in messages per second.

    `interval` is half the width of the confidence interval: the value is `mean` +/- `interval`. It is None where there
    is a single measurement, which says nothing about its own precision.
    """

    mean: float
    sigma: float
    interval: float | None
    median: float
    least: float
    most: float
    forks: int
    iterations: int

    @property
    def spread(self) -> float:
        """From the slowest to the fastest iteration, as a part of the median."""
        return (self.most - self.least) / self.median


def throughput(forks: Mapping[int, Sequence[float]]) -> Throughput:
    """The metrics of the iterations of every fork, warm-up left out.

    Equation 8 is the mean over the n iterations of a fork, equation 9 the mean over the forks and T_sigma, which
    divides by the number of forks (not by one less). Equation 10 is T_mean -/+ alpha * T_sigma / sqrt(forks).

    The paper leaves open what alpha is: section 6 calls it the confidence level of 99 % and multiplies by it, the text
    on the figures says 99.9 %, and neither names a distribution. Here alpha is the two-sided 99 % quantile of
    Student's t with one degree of freedom less than there are forks. With one fork the same is done with its
    iterations in place of the forks; that interval does not know how forks differ, so it is too narrow.
    """
    means = [mean_of_fork(rates) for rates in forks.values()]
    rates = [rate for fork in forks.values() for rate in fork]
    mean = statistics.fmean(means)
    values = means if len(means) > 1 else rates
    sigma = math.sqrt(statistics.fmean((value - mean) ** 2 for value in values))
    return Throughput(
        mean, sigma, confidence_interval(sigma, len(values)), statistics.median(rates), min(rates), max(rates),
        len(means), len(rates),
    )  # fmt: skip


def mean_of_fork(rates: Sequence[float]) -> float:
    """T_mean/fork of equation 8."""
    return statistics.fmean(rates)


def confidence_interval(sigma: float, count: int) -> float | None:
    """Half the width of equation 10; None where `count` is one."""
    if count < 2:
        return None
    return student_quantile(count - 1) * sigma / math.sqrt(count)


def student_quantile(freedom: int, level: float = CONFIDENCE) -> float:
    """The t for which a value of Student's distribution lies between -t and t with the probability `level`."""
    low, high = 0.0, 1.0
    while _within(high, freedom) < level:
        high *= 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if _within(middle, freedom) < level:
            low = middle
        else:
            high = middle
    return high


def _within(t: float, freedom: int) -> float:
    """The probability of [-t, t]; Abramowitz and Stegun 26.7.3 and 26.7.4, exact for whole degrees of freedom."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, square = math.sin(angle), math.cos(angle) ** 2
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for step in range(freedom // 2):
        total += term
        factor = (2 * step + 2) / (2 * step + 3) if odd else (2 * step + 1) / (2 * step + 2)
        term *= factor * square
    return (angle + sine * total) * 2 / math.pi if odd else sine * total
