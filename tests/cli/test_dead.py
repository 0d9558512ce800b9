"""penstock dead: list, show and replay, as a user types them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.docs.pages import penstock
from tests.spark.files import records

APP = """\
import os
from penstock import App, Files, Json, Route, body, function

MENDED = os.path.abspath("mended")

def price(total: float) -> float:
    if not os.path.exists(MENDED):
        raise ValueError("no price")
    return total * 2

cost = function(price, body.total, returns="DOUBLE")
lines = Json("id BIGINT, lines ARRAY<STRUCT<total: DOUBLE>>")
app = App(
    "orders",
    Route("intake", Files("orders.jsonl", format=lines)).split(body.lines, into="line", head=["id"]).to("parts"),
    Route("pricing", "parts").translate({"id": body.id, "total": body.line.total}).enrich({"price": cost}).to("out"),
    sinks={"out": Files("out")},
)
"""
ORDERS = ['{"id": 1, "lines": [{"total": 5}, {"total": 6}]}', "broken", '{"id": 2, "lines": [{"total": 7}]}']


@pytest.fixture
def here(spark: SparkSession, tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "orders.jsonl").write_text("\n".join(ORDERS) + "\n")
    status, out = penstock("penstock run app.py", tmp_path)
    assert status == 0, out
    return tmp_path


def say(command: str, here: Path, status: int = 0) -> list[str]:
    found, out = penstock(f"penstock dead {command}", here)
    assert found == status, out
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "TIME", re.sub(r"\b[0-9a-f]{16}\b", "LETTER", out)).splitlines()


def test_letters_are_listed_shown_and_replayed(here: Path) -> None:
    assert say("list app.py", here) == [
        "letter            time                  step            error           try  replayed  message",
        "LETTER  TIME  pricing.enrich  FunctionFailed  1    no        orders.jsonl/0/0.0",
        "LETTER  TIME  pricing.enrich  FunctionFailed  1    no        orders.jsonl/0/0.1",
        "LETTER  TIME  intake.decode   MalformedBody   1    no        orders.jsonl/0/1",
        "LETTER  TIME  pricing.enrich  FunctionFailed  1    no        orders.jsonl/0/2.0",
    ]
    first, *_ = [json.loads(line) for line in penstock("penstock dead list app.py --json", here)[1].splitlines()]
    assert (first["fields"], first["parent"], first["replays"]) == ('{"id": 1, "total": 5.0}', "orders.jsonl/0/0", 0)
    assert say("list app.py --where \"step = 'decode'\" --limit 1", here)[1:] == [
        "LETTER  TIME  intake.decode  MalformedBody  1    no        orders.jsonl/0/1"
    ]
    assert say("list app.py --limit 1", here)[2:] == ["... and 3 more: --limit 4 shows all"]
    assert say("list app.py --where \"step = 'none'\"", here) == ["no dead letter is like that"]
    assert say(f"show app.py {first['letter'][:8]}", here) == [
        "letter      LETTER",
        "step        pricing.enrich",
        "error       FunctionFailed: ValueError: no price",
        "attempt     1",
        "time        TIME",
        "replays     0",
        "id          orders.jsonl/0/0.0",
        "position    orders.jsonl/0/0",
        "parent      orders.jsonl/0/0, part 0 of 2",
        'fields      {"id": 1, "total": 5.0}',
        "",
        "body (utf-8)",
        ORDERS[0],
    ]
    assert say("replay app.py --where \"step = 'enrich'\" --at start --dry-run", here)[-1] == (
        "3 dead letters would come again as 2 messages"
    )
    (here / "mended").touch()
    assert say("replay app.py --where \"step = 'enrich'\"", here)[-5:] == [
        "  in         3",
        "  out   out  3",
        "  dead       0",
        "  3 in = 3 out + 0 filtered + 0 dead",
        "replayed 3 dead letters at the step that failed",
    ]
    assert sorted(record["price"] for record in records(here / "out")) == [10.0, 12.0, 14.0]
    assert [line.split()[5] for line in say("list app.py", here)[1:]] == ["yes", "yes", "no", "yes"]
    assert say("replay app.py --where \"step = 'enrich'\"", here) == ["nothing to replay"]
    assert say("replay app.py --where \"step = 'enrich'\" --again", here)[-1].startswith("replayed 3 dead letters")
    assert [line.split()[5] for line in say("list app.py", here)[1:]] == ["2", "2", "no", "2"]
    left_out = "; 1 dead letter left out: its body cannot be decoded now either"
    assert say("replay app.py", here) == [f"nothing to replay{left_out}"]
    assert say("replay app.py --again --dry-run", here) == [
        "letters  died at         error           enters at",
        "1        intake.decode   MalformedBody   left out: its body cannot be decoded now either",
        "3        pricing.enrich  FunctionFailed  pricing.enrich",
        f"3 dead letters would come again as 3 messages{left_out}",
    ]
    (here / "body.json").write_text('{"id": 9, "lines": [{"total": 8}]}\n')
    several = say("replay app.py --again --body body.json", here, status=2)
    assert several[0] == "BadEndpoint: --body is for one letter, and 4 are chosen"
    assert say("replay app.py --body nowhere.json", here, status=2)[0].startswith("BadFile: cannot read nowhere.json")
    assert say("replay app.py --body body.json", here)[-1] == "replayed 1 dead letter at the start"
    assert sorted(record["price"] for record in records(here / "out"))[-1] == 16.0
    assert [line.split()[5] for line in say("list app.py --where \"step = 'decode'\"", here)[1:]] == ["yes"]


def test_mistakes_are_said(here: Path) -> None:
    assert say("show app.py nothing", here, 2) == [
        "BadEndpoint: no dead letter has a name that begins with 'nothing'",
        "  fix  penstock dead list shows their names",
    ]
    assert say("show app.py ''", here, 2)[0] == "BadEndpoint: 4 dead letters have a name that begins with ''"
    assert say("list app.py --where \"stap = 'x'\"", here, 2)[0] == "UnknownField: a dead letter has no field 'stap'"
    (here / "app.py").write_text(APP.replace('.enrich({"price": cost})', '.enrich({"price": cost}, name="cost")'))
    assert say("replay app.py --where \"step = 'enrich'\"", here, 2) == [
        "CannotReplay: message orders.jsonl/0/0.0 cannot go on at pricing.enrich: "
        "the app has no step 'enrich' in route 'pricing' any more",
        "  fix  replay it from the start",
    ]


def test_there_may_be_none(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    assert say("list app.py", tmp_path) == ["no dead letters"]
    assert say("replay app.py", tmp_path) == ["nothing to replay"]
    assert say("replay app.py --dry-run", tmp_path) == ["nothing to replay"]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == ["app.py"]
