"""Messages of connected cars, as their on-board diagnosis (OBD) devices send them.

The two kinds, their fields and their sizes are those of the connected-car scenario of "Hardware Accelerated
Application Integration Processing" (section 6.5): error codes of about 304 bytes, telemetry of about 762. Readings
are text with a decimal comma and a unit, "18,8%". The same seed gives the same messages.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from penstock.demo.fleet import Owner, home, owners, strangers, write_owners

MESSAGES, CARS, SEED = 200_000, 1_000, 2017
MESSAGES_PER_FILE = 10_000

TROUBLE_CODES = (
    "P0011", "P0101", "P0113", "P0128", "P0133", "P0171", "P0172", "P0300", "P0301", "P0325", "P0335", "P0401", "P0420",
    "P0442", "P0455", "P0507", "P0562", "P0700", "P2463", "C0035", "C0242", "U0100", "U0121", "B1318",
)  # fmt: skip

_START_MILLISECONDS = 1_489_046_400_000
_PERCENT = [f"{tenth // 10},{tenth % 10}%" for tenth in range(1001)]
_TRIM = [f"{tenth / 10:.1f}%".replace(".", ",") for tenth in range(-95, 96)]
_CLOCK = [f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}" for second in range(3 * 3600)]
_VOLTS = [f"{tenth // 10},{tenth % 10}V" for tenth in range(132, 146)]


@dataclass(frozen=True, slots=True)
class Shares:
    """How often things happen, each from 0 to 1.

    `standing` is the share of the telemetry that comes from cars that do not move, `lamp` the share of the error
    codes with the malfunction indicator lamp (MIL) on, `broken` the share of messages that cannot be delivered.
    """

    errors: float = 0.25
    standing: float = 0.35
    lamp: float = 0.3
    broken: float = 0.005


@dataclass(frozen=True, slots=True)
class _Car:
    vin: str
    latitude: float
    longitude: float
    kilometres: int
    fuel: str


def write(
    directory: str, count: int = MESSAGES, cars: int = CARS, seed: int = SEED, shares: Shares | None = None
) -> int:
    """Write owners.csv and the messages, one per line, into a directory; the answer is the size of the messages."""
    os.makedirs(directory, exist_ok=True)
    write_owners(os.path.join(directory, "owners.csv"), owners(cars, seed))
    stream = messages(count, cars, seed, shares)
    size = 0
    for number in range(-(-count // MESSAGES_PER_FILE)):
        text = b"".join(message + b"\n" for message in islice(stream, MESSAGES_PER_FILE))
        with open(os.path.join(directory, f"messages-{number:04d}.jsonl"), "wb") as file:
            size += file.write(text)
    return size


def messages(count: int, cars: int = CARS, seed: int = SEED, shares: Shares | None = None) -> Iterator[bytes]:
    """So many messages of the cars of `owners(cars, seed)`, in the order of time."""
    random_source = random.Random(f"messages {seed}")
    draw, chosen = random_source.random, shares or Shares()
    fleet = [_car(owner, draw) for owner in owners(cars, seed)]
    unknown = strangers(10, seed)
    for number in range(count):
        car = fleet[int(draw() * len(fleet))]
        time = _START_MILLISECONDS + number * 20 + int(draw() * 20)
        is_error = draw() < chosen.errors
        text = _error_codes(car, time, draw, chosen.lamp) if is_error else _telemetry(car, time, draw, chosen.standing)
        yield (_broken(text, car, time, draw, unknown) if draw() < chosen.broken else text).encode()


def _car(owner: Owner, draw: Callable[[], float]) -> _Car:
    latitude, longitude = home(owner)
    return _Car(owner.VIN, latitude, longitude, int(draw() * 30_000), "Diesel" if draw() < 0.4 else "Gasoline")


def _head(car: _Car, time: int, draw: Callable[[], float]) -> str:
    latitude, longitude = car.latitude + draw() / 5 - 0.1, car.longitude + draw() / 5 - 0.1
    return (
        f'{{"obd2_Vehicle_Identification_Number_(VIN)": "{car.vin}", "timestamp": {time}, '
        f'"latitude": {latitude:.5f}, "longitude": {longitude:.5f}, "altitude": {95 + car.kilometres % 40}, '
    )


def _error_codes(car: _Car, time: int, draw: Callable[[], float], lamp: float) -> str:
    codes = _trouble_codes(draw) if draw() < lamp else []
    state, distance = ("ON", int(draw() * 900)) if codes else ("OFF", 0)
    return (
        f'{_head(car, time, draw)}"Diagnostic_Trouble_Codes": "MIL is {state}{len(codes)} codes", '
        f'"Trouble_Codes": "{",".join(codes)}", "Distance_traveled_with_MIL_on": "{distance}km", '
        f'"Distance_since_codes_cleared": "{car.kilometres}km"}}'
    )


def _trouble_codes(draw: Callable[[], float]) -> list[str]:
    count = 1 + int(draw() * draw() * 3)
    return sorted({TROUBLE_CODES[int(draw() * len(TROUBLE_CODES))] for _ in range(count)})


def _telemetry(car: _Car, time: int, draw: Callable[[], float], standing: float) -> str:
    speed = 0 if draw() < standing else 1 + int(draw() * 170)
    load = int((120 + draw() * 150) if speed == 0 else (200 + draw() * 300 + speed * 2))
    turns = int(680 + draw() * 220) if speed == 0 else int(1100 + speed % 40 * 45 + speed * 6 + draw() * 200)
    flow = int(turns * load / 4500 + draw() * 50)
    return (
        f'{_head(car, time, draw)}"Vehicle_Speed": "{speed}km/h", "Engine_RPM": "{turns}RPM", '
        f'"Engine_Load": "{_PERCENT[load]}", "Absolute_Load": "{_PERCENT[load * 7 // 8]}", '
        f'"Throttle_Position": "{_PERCENT[load * 3 // 4 + int(draw() * 50)]}", '
        f'"Engine_Runtime": "{_CLOCK[int(draw() * len(_CLOCK))]}", "Mass_Air_Flow": "{flow // 10},{flow % 10}g/s", '
        f'"Engine_Coolant_Temperature": "{84 + int(draw() * 14)}C", '
        f'"Engine_Oil_Temperature": "{86 + int(draw() * 22)}C", '
        f'"Air_Intake_Temperature": "{12 + int(draw() * 30)}C", "Ambient_Air_Temperature": "{int(draw() * 26) - 6}C", '
        f'"Intake_Manifold_Pressure": "{28 + load // 14}kPa", "Barometric_Pressure": "{96 + int(draw() * 7)}kPa", '
        f'"Fuel_Type": "{car.fuel}", "Fuel_Level": "{_PERCENT[50 + int(draw() * 950)]}", '
        f'"Fuel_Consumption_Rate": "{flow // 30},{flow % 10}L/h", '
        f'"Short_Term_Fuel_Trim_Bank_1": "{_TRIM[int(draw() * len(_TRIM))]}", '
        f'"Long_Term_Fuel_Trim_Bank_1": "{_TRIM[int(draw() * len(_TRIM))]}", '
        f'"Control_Module_Power_Supply": "{_VOLTS[int(draw() * len(_VOLTS))]}"}}'
    )


def _broken(text: str, car: _Car, time: int, draw: Callable[[], float], unknown: list[str]) -> str:
    """What goes wrong on the way: cut off, no clock, no speed, a car that nobody insures."""
    match int(draw() * 4):
        case 0:
            return text[: 1 + int(draw() * (len(text) - 2))]
        case 1:
            return text.replace(str(time), '"no clock"', 1)
        case 2 if "Vehicle_Speed" in text:
            return re.sub('"[0-9]+km/h"', '"NODATA"', text)
        case _:
            return text.replace(car.vin, unknown[int(draw() * len(unknown))], 1)
