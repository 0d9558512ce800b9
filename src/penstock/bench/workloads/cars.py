"""Connected cars as HW-EIP section 6.5 draws them, and with each optimisation that it tries.

The routes are those of examples/connected_cars.py. An optimisation is another way to write them, by hand, with the same
result: what a rewriting stage would have to find.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock import App, Route, body, join
from penstock.bench.workloads.ends import Ends
from penstock.demo import example
from penstock.expr.columns import Column, expression
from penstock.patterns.node import read_paths

OWNER = ["name", "city", "policy"]


def cars(
    name: str, early_project: bool = False, early_out: bool = False, merged: bool = False, parallel: int = 1
) -> Callable[[Ends], App]:
    """The app, with some optimisations; `merged` makes one step of router and filter."""

    def build(ends: Ends) -> App:
        scenario = example()
        is_driving = scenario.integer(body.Vehicle_Speed) > 0
        intake = Route("cars", ends.source())
        if early_project:
            intake = intake.keep(*_fields_read(scenario, is_driving))
        if early_out or merged:
            intake = intake.filter(scenario.is_error | is_driving, name="is-wanted")
        if merged:
            before, wanted = [intake.to("wanted")], ["wanted"]
        else:
            moving = Route("moving", "telemetry")
            moving = moving if early_out else moving.filter(is_driving, name="is-driving")
            before = [intake.choice({"error-codes": scenario.is_error}, otherwise="telemetry"), moving.to("driving")]
            wanted = ["error-codes", "driving"]
        return ends.app(name, *before, *_insurer(ends, scenario, wanted, parallel))

    return build


def _insurer(ends: Ends, scenario: Any, wanted: list[str], parallel: int) -> list[Route]:
    owners = ends.table("owners", "VIN", OWNER)
    source = join(*wanted) if len(wanted) > 1 else wanted[0]

    def deliver(route: Route) -> Route:
        return route.enrich_from(owners, on=scenario.VIN, into="owner").translate(scenario.receiver_format)

    if parallel == 1:
        return [deliver(Route("insurer", source)).to("out")]
    ways = [f"way-{number}" for number in range(1, parallel + 1)]
    return [
        Route("insurer", source).balance(*ways),
        *(deliver(Route(f"insurer-{way}", way)).to(f"from-{way}") for way in ways),
        Route("all", join(*(f"from-{way}" for way in ways))).to("out"),
    ]


def _fields_read(scenario: Any, *more: Column) -> list[str]:
    values = [value for value in scenario.receiver_format.values() if isinstance(value, Column)]
    read = read_paths(tuple(expression(column) for column in (*values, *more, scenario.VIN)))
    return sorted({str(path[0]) for path in read} - {"owner"})


APPS: dict[str, Callable[[Ends], App]] = {
    "cars-normal": cars("cars-normal"),
    "cars-sub-parallel": cars("cars-sub-parallel", parallel=2),
    "cars-neighbor-merge": cars("cars-neighbor-merge", merged=True),
    "cars-early-out": cars("cars-early-out", early_out=True),
    "cars-early-project": cars("cars-early-project", early_project=True),
    "cars-combined": cars("cars-combined", early_project=True, early_out=True, parallel=2),
}
