import json
import re
from statistics import mean

import pytest

from penstock.demo.cars import TROUBLE_CODES, Shares, messages, write
from penstock.demo.fleet import owners

WHOLE = Shares(broken=0)
VIN = "obd2_Vehicle_Identification_Number_(VIN)"


def kinds(listed):
    errors = [message for message in listed if "Diagnostic_Trouble_Codes" in json.loads(message)]
    return errors, [message for message in listed if "Vehicle_Speed" in json.loads(message)]


def test_messages_have_the_sizes_of_the_paper():
    errors, telemetry = kinds(list(messages(5_000, shares=WHOLE)))
    assert mean(map(len, errors)) == pytest.approx(304, rel=0.05)
    assert mean(map(len, telemetry)) == pytest.approx(762, rel=0.05)
    assert len(errors) + len(telemetry) == 5_000


def test_the_same_seed_gives_the_same_messages():
    assert list(messages(200, seed=5)) == list(messages(200, seed=5))
    assert list(messages(200, seed=5)) != list(messages(200, seed=6))


def test_fewer_messages_are_the_beginning_of_more():
    assert list(messages(50)) == list(messages(100))[:50]


def test_readings_are_text_with_a_unit_and_a_decimal_comma():
    _, telemetry = kinds(list(messages(500, shares=WHOLE)))
    for body in map(json.loads, telemetry):
        assert re.fullmatch("[0-9]+km/h", body["Vehicle_Speed"])
        assert re.fullmatch("[0-9]{1,3},[0-9]%", body["Engine_Load"])
        assert re.fullmatch("[0-9]+RPM", body["Engine_RPM"])
        assert re.fullmatch("-?[0-9]+C", body["Ambient_Air_Temperature"])


def test_trouble_codes_are_listed_when_the_lamp_is_on():
    errors, _ = kinds(list(messages(2_000, shares=Shares(errors=1, broken=0))))
    states = set()
    for body in map(json.loads, errors):
        codes = [code for code in body["Trouble_Codes"].split(",") if code]
        state = "ON" if codes else "OFF"
        states.add(state)
        assert body["Diagnostic_Trouble_Codes"] == f"MIL is {state}{len(codes)} codes"
        assert set(codes) <= set(TROUBLE_CODES)
    assert states == {"ON", "OFF"}


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_shares_are_kept(share):
    errors, _ = kinds(list(messages(4_000, shares=Shares(errors=share, broken=0))))
    assert len(errors) / 4_000 == pytest.approx(share, abs=0.03)
    _, telemetry = kinds(list(messages(4_000, shares=Shares(errors=0, standing=share, broken=0))))
    standing = [body for body in map(json.loads, telemetry) if body["Vehicle_Speed"] == "0km/h"]
    assert len(standing) / 4_000 == pytest.approx(share, abs=0.03)


def test_broken_messages_are_broken_in_four_ways():
    known = {owner.VIN for owner in owners(1_000, 2017)}
    found = {"cut": 0, "clock": 0, "speed": 0, "stranger": 0}
    for message in messages(1_000, shares=Shares(broken=1)):
        try:
            body = json.loads(message)
        except ValueError:
            found["cut"] += 1
            continue
        found["clock"] += body["timestamp"] == "no clock"
        found["speed"] += body.get("Vehicle_Speed") == "NODATA"
        found["stranger"] += body[VIN] not in known
    assert min(found.values()) > 100
    assert sum(found.values()) == 1_000


def test_write_makes_files_that_hold_all_messages(tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.demo.cars.MESSAGES_PER_FILE", 100)
    size = write(str(tmp_path), 250, 10, 1)
    files = sorted(tmp_path.glob("*.jsonl"))
    assert [file.name for file in files] == [f"messages-000{number}.jsonl" for number in range(3)]
    text = b"".join(file.read_bytes() for file in files)
    assert text.splitlines() == list(messages(250, 10, 1))
    assert len(text) == size
