"""Cars and the people who own them: vehicle identification numbers, and a table of owners by number."""

from __future__ import annotations

import csv
import random
from dataclasses import astuple, dataclass, fields

_MAKERS = ("JTD", "TMB", "VF1", "VF3", "VSS", "W0L", "WAU", "WBA", "WDD", "WVW", "YV1", "ZFA")
_LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"
_VALUES = dict(zip("0123456789ABCDEFGHJKLMNPRSTUVWXYZ", map(int, "012345678912345678123457923456789"), strict=True))
_WEIGHTS = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)
_MODEL_YEARS = "9ABCDEFGH"

_FIRST = (
    "Aylin", "Björn", "Carla", "Daniel", "Elif", "François", "Greta", "Henrik", "Ines", "Jürgen", "Katarzyna", "Lukas",
    "Maria", "Nuno", "Olga", "Paweł", "Renée", "Sofia", "Tomáš", "Zoë",
)  # fmt: skip
_LAST = (
    "Andersson", "Bauer", "Çelik", "Dubois", "Eriksen", "Ferreira", "García", "Hofmann", "Ivanova", "Jansen",
    "Kowalski", "Lindqvist", "Müller", "Novák", "O'Brien", "Petrov", "Rossi", "Schäfer", "Tóth", "Weiß",
)  # fmt: skip
_CITIES = {
    "Berlin": (52.52, 13.4), "Bremen": (53.08, 8.8), "Dresden": (51.05, 13.74), "Freiburg": (48.0, 7.84),
    "Hamburg": (53.55, 10.0), "Köln": (50.94, 6.96), "Leipzig": (51.34, 12.37), "Lyon": (45.76, 4.84),
    "München": (48.14, 11.58), "Strasbourg": (48.57, 7.75), "Walldorf": (49.3, 8.64), "Wien": (48.21, 16.37),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Owner:
    """What the insurer knows about a car: one line of the owner table."""

    VIN: str
    name: str
    city: str
    policy: str
    insured_since: str


def owners(count: int, seed: int) -> list[Owner]:
    """So many owners, each with one car of their own."""
    random_source = random.Random(f"owners {seed}")
    chosen: dict[str, Owner] = {}
    while len(chosen) < count:
        vin = _vin(random_source)
        chosen[vin] = Owner(
            vin,
            f"{random_source.choice(_FIRST)} {random_source.choice(_LAST)}",
            random_source.choice(list(_CITIES)),
            f"KFZ-{random_source.randrange(10**7, 10**8)}",
            f"{random_source.randint(2009, 2016)}-{random_source.randint(1, 12):02d}-01",
        )
    return list(chosen.values())


def strangers(count: int, seed: int) -> list[str]:
    """Numbers of cars that nobody insures."""
    random_source = random.Random(f"strangers {seed}")
    return [_vin(random_source) for _ in range(count)]


def home(owner: Owner) -> tuple[float, float]:
    """Latitude and longitude of the owner's city."""
    return _CITIES[owner.city]


def write_owners(path: str, listed: list[Owner]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(Owner)])
        writer.writerows(astuple(owner) for owner in listed)


def check_digit(vin: str) -> str:
    """The ninth character that the other sixteen ask for (ISO 3779, as North America applies it)."""
    rest = sum(_VALUES[letter] * weight for letter, weight in zip(vin, _WEIGHTS, strict=True)) % 11
    return "X" if rest == 10 else str(rest)


def _vin(random_source: random.Random) -> str:
    maker = random_source.choice(_MAKERS)
    model = "".join(random_source.choices(_LETTERS, k=3)) + f"{random_source.randrange(100):02d}"
    plant = random_source.choice(_MODEL_YEARS) + random_source.choice(_LETTERS)
    number = f"{random_source.randrange(10**6):06d}"
    return f"{maker}{model}{check_digit(f'{maker}{model}0{plant}{number}')}{plant}{number}"
