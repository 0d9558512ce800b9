"""The example against a computation that knows nothing of Penstock: json, csv, re and an if."""

import csv
import importlib.util
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from penstock.demo.cars import Shares, write
from penstock.spark.run import run_batch
from penstock.spark.stream import run_stream
from penstock.testing import run

EXAMPLE = Path(__file__).parents[2] / "examples" / "connected_cars.py"
MESSAGES = 2_000
VIN = "obd2_Vehicle_Identification_Number_(VIN)"
MAKERS = {
    "TMB": "Škoda", "VF1": "Renault", "VF3": "Peugeot", "VSS": "SEAT", "W0L": "Opel", "WAU": "Audi", "WBA": "BMW",
    "WDD": "Mercedes-Benz", "WVW": "Volkswagen", "YV1": "Volvo", "ZFA": "Fiat", "JTD": "Toyota",
}  # fmt: skip


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("connected_cars", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    directory = tmp_path_factory.mktemp("cars")
    write(str(directory), MESSAGES, 50, 11, Shares(broken=0.08))
    return directory


@pytest.fixture(scope="module")
def expected(data):
    return computed(lines_of(data), owners_of(data))


def lines_of(directory):
    return [line for path in sorted(directory.glob("*.jsonl")) for line in path.read_bytes().splitlines()]


def owners_of(directory):
    with open(directory / "owners.csv", encoding="utf-8", newline="") as file:
        return {row["VIN"]: row for row in csv.DictReader(file)}


def computed(lines, owners):
    """Delivered bodies, the number of filtered messages, and (error, step) of the dead."""
    delivered, filtered, dead = [], 0, Counter()
    for line in lines:
        try:
            body = json.loads(line)
        except ValueError:
            dead["MalformedBody", "decode"] += 1
            continue
        if not isinstance(body["timestamp"], int):
            dead["WrongType", "decode"] += 1
            continue
        if "Diagnostic_Trouble_Codes" not in body:
            speed = re.search("[0-9]+", body["Vehicle_Speed"])
            if not speed:
                dead["MissingField", "is-driving"] += 1
                continue
            if int(speed[0]) == 0:
                filtered += 1
                continue
        if body[VIN] not in owners:
            dead["NotInTable", "add-owner"] += 1
            continue
        delivered.append(translated(body, owners[body[VIN]]))
    return delivered, filtered, dead


def translated(body, owner):
    result = {
        "sent": body["timestamp"],
        "vehicle": {
            "vin": body[VIN],
            "make": MAKERS[body[VIN][:3]],
            "latitude": body["latitude"],
            "longitude": body["longitude"],
        },
        "owner": {name: owner[name] for name in ("name", "city", "policy")},
    }
    if "Diagnostic_Trouble_Codes" in body:
        lamp, count = re.fullmatch("MIL is (ON|OFF)([0-9]+) codes", body["Diagnostic_Trouble_Codes"]).groups()
        diagnosis = {
            "lamp": lamp == "ON",
            "count": int(count),
            "kilometres": int(body["Distance_traveled_with_MIL_on"].removesuffix("km")),
        }
        codes = {"codes": body["Trouble_Codes"].split(",")} if body["Trouble_Codes"] else {}
        return result | {"kind": "error-code", "diagnosis": diagnosis | codes, "readings": {}}
    readings = {
        "speed": int(body["Vehicle_Speed"].removesuffix("km/h")),
        "rpm": int(body["Engine_RPM"].removesuffix("RPM")),
        "load": float(body["Engine_Load"].removesuffix("%").replace(",", ".")),
        "coolant": int(body["Engine_Coolant_Temperature"].removesuffix("C")),
        "fuel": float(body["Fuel_Level"].removesuffix("%").replace(",", ".")),
        "fuel_type": body["Fuel_Type"].lower(),
    }
    return result | {"kind": "telemetry", "diagnosis": {}, "readings": readings}


def in_order(bodies):
    return sorted(bodies, key=lambda body: json.dumps(body, sort_keys=True))


def written(directory):
    return [json.loads(line) for path in directory.iterdir() for line in path.read_bytes().splitlines()]


def check_files(out, summary, expected):
    delivered, filtered, dead = expected
    assert summary.received == MESSAGES
    assert summary.conserved
    assert in_order(written(out / "delivered")) == in_order(delivered)
    assert dict(summary.filtered) == {"moving.is-driving": filtered}
    assert Counter((letter["error"], letter["step"]) for letter in written(out / "dead-letters")) == dead


def test_the_reference_gives_the_computed_answer(example, data, expected):
    delivered, filtered, dead = expected
    result = run(example.build(str(data), "unused"), lines_of(data))
    assert result.bodies("delivered") == delivered
    assert dict(result.filtered) == {"moving.is-driving": filtered}
    assert Counter((letter.error, letter.step) for letter in result.dead) == dead
    assert len(dead) == 4
    assert result.summary.conserved


def test_a_batch_on_spark_gives_the_computed_answer(spark, example, data, expected, tmp_path):
    result = run_batch(example.build(str(data), str(tmp_path)), spark)
    check_files(tmp_path, result.summary, expected)


def test_a_stream_on_spark_gives_the_computed_answer(spark, example, data, expected, tmp_path):
    app = example.build(str(data), str(tmp_path / "out"))
    result = run_stream(app, str(tmp_path / "checkpoint"), once=True, spark=spark)
    check_files(tmp_path / "out", result.summary, expected)


def test_the_sample_beside_the_example_is_what_the_generator_writes(tmp_path):
    write(str(tmp_path), 40, 10, 15, Shares(broken=0.12))
    sample = EXAMPLE.parent / "cars"
    assert sorted(path.name for path in sample.iterdir()) == ["messages-0000.jsonl", "owners.csv"]
    for path in sample.iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes()


def test_the_sample_shows_every_way_a_message_can_end(example):
    result = run(example.app, lines_of(EXAMPLE.parent / "cars"))
    assert {body["kind"] for body in result.bodies("delivered")} == {"error-code", "telemetry"}
    assert sum(result.filtered.values()) > 0
    assert {letter.error for letter in result.dead} == {"MalformedBody", "WrongType", "MissingField", "NotInTable"}
