"""What happens at every step, counted on the way.

A row carries one bit for each step that it came to, and one for the step that made it as a copy. All bits are counted
at the end, in the aggregate that counts the places: no step ends the generated code, and no message is looked at twice.
A copy starts without the bits of its original, and so does what a step with memory sends on: the step has counted the
bits of what it took. On a stream, the same aggregate knows the times of the rows with a bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.plan.failing import may_fail
from penstock.plan.plan import Plan, PlannedRoute, Stage
from penstock.plan.stopping import stopping_stages
from penstock.reference.run import DECODE
from penstock.spark.frame import (
    AT,
    BACK,
    BITS,
    COPIED,
    DEAD,
    ERROR,
    IN,
    RESUME,
    TIME,
    VISITED,
    WAITING,
    Places,
    change,
    here,
)
from penstock.spark.read.arrive import gives_time
from penstock.spark.times import Times
from penstock.summary import Step

PLACE = "place"
"""Where a row is, for counting: as `at`, but the dead and the waiting have the number of their step."""
_DEAD, _WAITING = -2_000_000, -3_000_000

Counted = Mapping[str, int]


def nowhere(places: Places) -> dict[str, Column]:
    """The bits of a row that has been nowhere."""
    return {name: F.lit(0).cast("bigint") for name in places.visited}


def came_to(data: DataFrame, stage: Stage, places: Places) -> DataFrame:
    """Note that the messages here came to this step; those that waited for it came before."""
    return _marked(data, here(stage, places), places.marks[IN, stage.title])


def sent_back(data: DataFrame, chosen: Column, route: PlannedRoute, places: Places) -> DataFrame:
    """Note that these messages wait at the start of their route again."""
    return _marked(data, chosen, places.marks[BACK, route.name])


def made_at(stage: Stage, places: Places) -> dict[str, Column]:
    """The bits of a copy: it was made here, and has been nowhere else."""
    column, bit = _place(places.marks[COPIED, stage.title])
    return {**nowhere(places), column: F.lit(bit).cast("bigint")}


def place_column(data: DataFrame, plan: Plan) -> Column:
    """PLACE, from the place and the error of a row."""
    place, numbers = F.col(AT), _deaths(plan)
    if RESUME in data.columns:
        place = F.when(F.col(AT) == WAITING, F.lit(_WAITING) - F.col(RESUME)).otherwise(place)
    if len(numbers) == 1:
        return place  # reading the error only to find out what is known costs as much as all other counting
    failed = F.concat_ws(".", F.col(ERROR).getField("route"), F.col(ERROR).getField("step"))
    step = F.element_at(F.create_map(*(F.lit(part) for pair in numbers.items() for part in pair)), failed)
    return F.when(F.col(AT) == DEAD, step).otherwise(place)


def tally_columns(plan: Plan, places: Places, waiting: bool, timed: bool) -> list[Column]:
    """The aggregates: every place, every bit; `timed` also asks for the times of what came to sinks and steps."""
    ended = {f"sink {name}": number for name, number in places.sinks.items()}
    ended |= {f"filtered {stage.title}": places.filtered(stage) for stage in plan.stages() if _may_filter(stage)}
    ended |= {f"dead {title}": number for title, number in _deaths(plan).items()}
    if waiting:
        ended |= {f"waiting {title}": _WAITING - number for title, number in places.resumes.items()}
    chosen = {name: F.col(PLACE) == number for name, number in ended.items()}
    for number in places.marks.values():
        column, bit = _place(number)
        chosen[f"bit {number}"] = F.col(column).bitwiseAND(F.lit(bit)) != 0
    columns = [F.count_if(condition).alias(name) for name, condition in chosen.items()]
    return [*columns, *(_time_columns(plan, places, chosen) if timed else ())]


def _time_columns(plan: Plan, places: Places, chosen: Mapping[str, Column]) -> Iterator[Column]:
    """The times of messages that come to a sink, to a step, or to a decoder that cannot read them."""
    if not plan.remembers and not any(gives_time(entry) for entry in plan.entries):
        yield F.min(TIME).alias("time")  # all have that of the batch: asking at every step costs more than all counting
        return
    names = [f"sink {name}" for name in places.sinks]
    names += [f"dead {entry.route}.{DECODE}" for entry in plan.entries]
    names += [f"bit {number}" for (kind, _), number in places.marks.items() if kind != COPIED]
    for name in names:
        time = F.when(chosen[name], F.col(TIME))
        yield F.avg(time).alias(f"time {name}")
        yield F.min(time).alias(f"earliest {name}")


def observed_times(observed: Mapping[str, Any], name: str) -> Times:
    """The messages of one aggregate."""
    same = observed.get("time")
    return Times(observed[name] or 0, observed.get(f"time {name}", same), observed.get(f"earliest {name}", same))


def released_columns(places: Places) -> list[Column]:
    return [F.count_if(F.col(AT) == number).alias(title) for title, number in places.resumes.items()]


def steps(
    plan: Plan, observed: Mapping[str, Any], released: Counted, notes: Iterable[Mapping[str, Any]]
) -> tuple[dict[str, Step], dict[str, Times]]:
    """The numbers of every step, from the aggregates, from who came out of the waiting room, and from the tasks; and
    the times of the messages that came to it.

    A message that waits for another try is held by the step where it will go on. One that goes back to the start of its
    route for that has left the step that failed, and come to the first one again.
    """
    places = Places.of(plan)
    marked = {number: observed_times(observed, f"bit {number}") for number in places.marks.values()}
    held: Counter[str] = Counter()
    merged: Counter[str] = Counter()
    for note in notes:
        for number, count in note.get("visited", {}).items():
            marked[int(number)] += Times(count, *note.get("times", {}).get(number, ()))
        if "step" in note:
            held[note["step"]] += note["held"]
            merged[note["step"]] += note["merged"]
    result: dict[str, Step] = {}
    came: dict[str, Times] = {}
    for route in plan.routes:
        for index, stage in enumerate(route.stages):
            title = stage.title
            arrived = _bit(marked, places, IN, title)
            if not index and any(entry.route == route.name for entry in plan.entries):
                decoder = f"{route.name}.{DECODE}"
                undecoded = observed_times(observed, f"dead {decoder}")
                came[decoder] = arrived + undecoded
                result[decoder] = Step(came[decoder].messages, arrived.messages, 0, undecoded.messages)
            came[title] = arrived + (_bit(marked, places, BACK, route.name) if not index else Times())
            result[title] = _balanced(
                came[title].messages,
                _bit(marked, places, COPIED, title).messages - merged[title],
                observed.get(f"filtered {title}") or 0,
                observed.get(f"dead {title}") or 0,
                held[title] + (observed.get(f"waiting {title}") or 0) - released.get(title, 0),
            )
    return result, came


def _balanced(arrived: int, copied: int, filtered: int, dead: int, held: int) -> Step:
    return Step(arrived, arrived + copied - filtered - dead - held, filtered, dead, held, copied)


def _bit(marked: Mapping[int, Times], places: Places, kind: str, name: str) -> Times:
    number = places.marks.get((kind, name))
    return marked[number] if number is not None else Times()


def _may_filter(stage: Stage) -> bool:
    return stage.node.stateful or stage.node.messages != "1:1"


def _deaths(plan: Plan) -> dict[str, int]:
    titles = [f"{entry.route}.{DECODE}" for entry in plan.entries]
    stopping = stopping_stages(plan)
    dying = (stage for stage in plan.stages() if stage.node.stateful or may_fail(stage.node) or stage in stopping)
    titles += [stage.title for stage in dying]
    if len(titles) == 1:
        return {titles[0]: DEAD}
    return {title: _DEAD - number for number, title in enumerate(titles)}


def _marked(data: DataFrame, chosen: Column, number: int) -> DataFrame:
    name, bit = _place(number)
    return change(data, chosen, {name: F.col(name).bitwiseOR(F.lit(bit).cast("bigint"))})


def _place(number: int) -> tuple[str, int]:
    return f"{VISITED}_{number // BITS}", 1 << number % BITS
