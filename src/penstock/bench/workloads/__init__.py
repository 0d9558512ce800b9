"""Every workload of EIPBench and of HW-EIP's Table 3 as a Penstock route."""

from __future__ import annotations

from collections.abc import Callable

from penstock import App
from penstock.bench.workloads import cars, composition, delivery, routing, splitting, transformation
from penstock.bench.workloads.ends import Ends

APPS: dict[str, Callable[[Ends], App]] = {
    **routing.APPS,
    **splitting.APPS,
    **transformation.APPS,
    **delivery.APPS,
    **composition.APPS,
    **cars.APPS,
}
"""By the name of the workload: a function of its ends."""
