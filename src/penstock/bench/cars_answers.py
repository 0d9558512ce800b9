"""What the insurer of the connected cars gets, in plain Python: nothing of Penstock is used here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

Message = dict[str, Any]

VIN = "obd2_Vehicle_Identification_Number_(VIN)"
MAKERS = {
    "JTD": "Toyota", "TMB": "Škoda", "VF1": "Renault", "VF3": "Peugeot", "VSS": "SEAT", "W0L": "Opel", "WAU": "Audi",
    "WBA": "BMW", "WDD": "Mercedes-Benz", "WVW": "Volkswagen", "YV1": "Volvo", "ZFA": "Fiat",
}  # fmt: skip


def insured(messages: Iterable[Message], owners: Iterable[Message]) -> list[Message]:
    """Every error code, and the telemetry of cars that are being driven."""
    by_vin = {owner["VIN"]: owner for owner in owners}
    return [_translated(message, by_vin[message[VIN]]) for message in messages if _is_wanted(message)]


def _is_wanted(message: Message) -> bool:
    return "Diagnostic_Trouble_Codes" in message or _whole(message["Vehicle_Speed"]) > 0


def _translated(message: Message, owner: Message) -> Message:
    is_error = "Diagnostic_Trouble_Codes" in message
    return {
        "kind": "error-code" if is_error else "telemetry",
        "sent": message["timestamp"],
        "vehicle": {
            "vin": message[VIN],
            "make": MAKERS[message[VIN][:3]],
            "latitude": message["latitude"],
            "longitude": message["longitude"],
        },
        "owner": {name: owner[name] for name in ("name", "city", "policy")},
        "diagnosis": _diagnosis(message) if is_error else {},
        "readings": {} if is_error else _readings(message),
    }


def _diagnosis(message: Message) -> Message:
    found = {
        "lamp": "MIL is ON" in message["Diagnostic_Trouble_Codes"],
        "count": int(re.findall("([0-9]+) codes", message["Diagnostic_Trouble_Codes"])[0]),
        "kilometres": _whole(message["Distance_traveled_with_MIL_on"]),
    }
    return found | ({"codes": message["Trouble_Codes"].split(",")} if message["Trouble_Codes"] else {})


def _readings(message: Message) -> Message:
    return {
        "speed": _whole(message["Vehicle_Speed"]),
        "rpm": _whole(message["Engine_RPM"]),
        "load": _decimal(message["Engine_Load"]),
        "coolant": _whole(message["Engine_Coolant_Temperature"]),
        "fuel": _decimal(message["Fuel_Level"]),
        "fuel_type": message["Fuel_Type"].lower(),
    }


def _whole(reading: str) -> int:
    return int(re.findall("-?[0-9]+", reading)[0])


def _decimal(reading: str) -> float:
    return float(re.findall("-?[0-9]+,[0-9]+", reading)[0].replace(",", "."))
