"""Connected cars: the scenario of section 6.5 of "Hardware Accelerated Application Integration Processing".

Cars send two kinds of messages: error codes and telemetry. The insurer of the cars wants every error code, and the
telemetry of cars that are being driven, together with the owner's name and policy, in a format of its own.

    cars ─▶ content-based ──────── error-codes ────────▶ join   ─▶ content enricher ─▶ message    ─▶ delivered
            router        ─ telemetry ─▶ message filter ─▶ router    (owner by VIN)      translator

What cannot be delivered ends as a dead letter that says which step refused it and why: text that is not JSON, a
timestamp that is not a number, telemetry without a speed, a car that no owner is known for. Try it:

    penstock explain examples/connected_cars.py     the routes, and which fields are read where
    penstock run examples/connected_cars.py         40 messages from examples/cars into connected-cars/
    penstock demo                                   200,000 messages, in batch and as a stream

CARS names another directory with owners.csv and *.jsonl to read from, CARS_OUT another one to write to.
"""

import os

from penstock import App, Files, Json, Route, body, call, join, lookup, lookup_table, when

# A reading is text with a decimal comma and a unit: "18,8%". Fields that are not listed are never parsed.
SCHEMA = """
    `obd2_Vehicle_Identification_Number_(VIN)` STRING, timestamp BIGINT, latitude DOUBLE, longitude DOUBLE,
    Diagnostic_Trouble_Codes STRING, Trouble_Codes STRING, Distance_traveled_with_MIL_on STRING,
    Vehicle_Speed STRING, Engine_RPM STRING, Engine_Load STRING, Engine_Coolant_Temperature STRING,
    Fuel_Type STRING, Fuel_Level STRING
"""
VIN = body["obd2_Vehicle_Identification_Number_(VIN)"]
MAKERS = {
    "TMB": "Škoda", "VF1": "Renault", "VF3": "Peugeot", "VSS": "SEAT", "W0L": "Opel", "WAU": "Audi", "WBA": "BMW",
    "WDD": "Mercedes-Benz", "WVW": "Volkswagen", "YV1": "Volvo", "ZFA": "Fiat", "JTD": "Toyota",
}  # fmt: skip


def integer(reading):
    """The whole number in text like "87km/h"; missing where there is none."""
    return call("to_integer", call("extract", reading, "(-?[0-9]+)"))


def decimal(reading):
    """The number with a decimal comma in text like "18,8%"; missing where there is none."""
    return call("to_double", call("replace", call("extract", reading, "(-?[0-9]+,[0-9]+)"), ",", "."))


is_error = body.Diagnostic_Trouble_Codes.is_present()

receiver_format = {
    "kind": when(is_error, "error-code").otherwise("telemetry"),
    "sent": body.timestamp,
    "vehicle.vin": VIN,
    "vehicle.make": lookup(call("substring", VIN, 0, 3), MAKERS, "unknown"),
    "vehicle.latitude": body.latitude,
    "vehicle.longitude": body.longitude,
    "owner.name": body.owner.name,
    "owner.city": body.owner.city,
    "owner.policy": body.owner.policy,
    "diagnosis.lamp": call("contains", body.Diagnostic_Trouble_Codes, "MIL is ON"),
    "diagnosis.count": call("to_integer", call("extract", body.Diagnostic_Trouble_Codes, "([0-9]+) codes")),
    "diagnosis.codes": when(body.Trouble_Codes != "", call("split", body.Trouble_Codes, ",")),
    "diagnosis.kilometres": integer(body.Distance_traveled_with_MIL_on),
    "readings.speed": integer(body.Vehicle_Speed),
    "readings.rpm": integer(body.Engine_RPM),
    "readings.load": decimal(body.Engine_Load),
    "readings.coolant": integer(body.Engine_Coolant_Temperature),
    "readings.fuel": decimal(body.Fuel_Level),
    "readings.fuel_type": call("lower", body.Fuel_Type),
}


def build(data: str, out: str, source=None) -> App:
    """The app that reads owners.csv and *.jsonl, or another source, from `data` and writes below `out`."""
    owners = lookup_table(f"{data}/owners.csv", key="VIN")
    return App(
        "connected-cars",
        Route("cars", source or Files(f"{data}/*.jsonl", Json(SCHEMA)))
        .choice({"error-codes": is_error}, otherwise="telemetry"),
        Route("moving", "telemetry")
        .filter(integer(body.Vehicle_Speed) > 0, missing="dead", name="is-driving")
        .to("driving"),
        Route("insurer", join("error-codes", "driving"))
        .enrich_from(owners, on=VIN, into="owner", missing="dead", name="add-owner")
        .translate(receiver_format)
        .to("delivered", Files(f"{out}/delivered")),
        dead_letters=Files(f"{out}/dead-letters"),
    )  # fmt: skip


here = os.path.dirname(os.path.abspath(__file__))
app = build(os.environ.get("CARS", os.path.join(here, "cars")), os.environ.get("CARS_OUT", "connected-cars"))
