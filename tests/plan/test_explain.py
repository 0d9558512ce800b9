"""The text of a plan is pinned in snapshots; UPDATE_SNAPSHOTS=1 writes them anew."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from penstock import App, Csv, Files, Json, Memory, Route, Void, Xml, body
from penstock.plan.explain import explain
from tests.plan import apps

SNAPSHOTS = Path(__file__).parent / "snapshots"


def compare(name: str, text: str) -> None:
    file = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS") == "1":
        file.write_text(text)
    assert text == file.read_text()


def test_connected_cars(tmp_path: Path) -> None:
    compare("connected-cars", explain(apps.cars(apps.models(tmp_path)).plan))


@pytest.mark.parametrize("app", [apps.every_step, apps.every_end, apps.every_memory])
def test_every_part_has_a_line(app) -> None:
    compare(app().name, explain(app().plan))


def test_the_text_is_the_same_for_the_same_app(tmp_path: Path) -> None:
    table = apps.models(tmp_path)
    assert apps.cars(table).explain() == apps.cars(table).explain()


def test_nothing_is_read_where_nobody_asks() -> None:
    app = App("copy", Route("all", Files("in", format=Json("id BIGINT"))).to("out", Void()))
    assert "all := Source[files in, json]  reads nothing of the body\n" in app.explain()


def test_paths_that_only_the_decoder_follows_are_read() -> None:
    app = App("x", Route("all", Memory(format=Xml())).filter("xpath('/order[total > 5]')").to("out", Void()))
    assert "reads xpath('/order[total > 5]')" in app.explain()


def test_a_sink_says_in_which_form_bodies_arrive() -> None:
    csv = Csv("id BIGINT")
    app = App(
        "forms",
        Route("a", Memory(format=Json("id BIGINT"))).tap("raw").tap("as-csv").keep("id").to("new"),
        sinks={"raw": Void(), "as-csv": Files("o", format=csv), "new": Void()},
    )
    lines = [line.strip() for line in app.explain().splitlines()]
    assert "as-csv := files o  bodies as csv  | exactly once: a replayed batch replaces its own files" in lines
    assert "raw := void        bodies as they came  | best effort: nothing is kept" in lines
    assert "new := void        rewritten bodies as json  | best effort: nothing is kept" in lines


def test_a_line_break_in_a_condition_does_not_break_the_line() -> None:
    app = App("lines", Route("a", Memory(format=Json("t STRING"))).filter(body.t == "a\nb").to("out", Void()))
    assert "t = 'a\\nb'" in app.explain()


def test_it_says_where_the_stages_on_spark_are_cut_and_who_waits() -> None:
    files = Route("in", Files("in", Json("n BIGINT, v VARIANT")))
    read = "  1 := read in, all steps as far as messages come"
    shuffled = "  2 := shuffle to the key at in.idempotent, that step and all behind it"
    apps: list[tuple[list[str], Any]] = [
        ([read], files.filter(body.n > 1)),
        ([read, shuffled], files.idempotent(body.n)),
        ([read, shuffled, "  later batches := messages at in.idempotent that wait for the fate of the first with their"
          " key"], files.idempotent(body.n).filter(body.n > 1, missing="dead")),
        ([read, "  later batches := messages of route in that wait for another try"],
         files.filter(body.n > 1, missing="dead").on_error(delay=1)),
    ]  # fmt: skip
    for expected, route in apps:
        lines = App("a", route.to("out", Files("out"))).explain().splitlines()
        assert lines[lines.index("stages on Spark") + 1 :] == expected
    inside = App("a", files.filter(body.v.a == 1).translate({"v": body.v}).to("out", Files("out"))).explain()
    assert [line.split()[0] for line in inside.splitlines() if "row by row" in line] == ["filter"]
