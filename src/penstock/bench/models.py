"""The message models of EIPBench as files, written once and reused."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.bench.messages import FAMILIES, HEAD, TAIL, Messages, NotEnough, Tables
from penstock.bench.spelling import SPACED, respelled
from penstock.bench.tpch import COLUMNS, scale_directory
from penstock.bench.variants import VARIANTS
from penstock.errors import PenstockError, did_you_mean
from penstock.schema import quote_name

FILES = 4
NUMBERS = {
    "scaled": range(1, 21),
    "collections": [2**beta for beta in range(11)],
    "sequences": [10, 100, 1_000, 10_000, 100_000],
}
"""The numbers of the paper for the families that need one; others can be asked for."""
_DISTANCE_OF_DUPLICATES = 100_000
_SIZES = "_sizes.json"  # Spark leaves out files whose name starts so
_NAME = re.compile(r"(?P<family>[a-z]+)(-(?P<number>[1-9][0-9]*))?(-(?P<variant>xml|csv))?")


Form = Callable[[Iterable[bytes]], Iterator[bytes]]
"""Makes of compact JSON lines what is written."""


class BadModel(PenstockError):
    """A message model that there is not, or that the tables are too small for."""


@dataclass(frozen=True)
class ModelFiles:
    """The files of one model in the order of the messages."""

    paths: tuple[Path, ...]
    messages: int
    bytes: int

    @property
    def bytes_per_message(self) -> float:
        return self.bytes / self.messages


def model_files(
    directory: Path, model: str, scale: float, messages: int | None = None, spelling: str = SPACED
) -> ModelFiles:
    """The messages of a model, one per line, in up to four files below `directory`.

    `messages` counts orders where messages are made of parts or groups of them (collections, fields, entries,
    sequences, duplicates). None takes all orders, every customer once, or one scaled message. The models customers,
    nations and regions never repeat a row; in others, customers start again at the first when there are no more.
    """
    family, number, variant = _parsed(model)
    if messages is not None and messages < 1:
        raise BadModel(f"{messages} messages of {model!r} are none", fix="ask for one or more")
    count = "all" if messages is None else str(messages)
    target = scale_directory(directory, scale) / model / (count if variant in VARIANTS else f"{count}-{spelling}")
    if not target.exists():
        try:
            made = FAMILIES[family](Tables(directory, scale), messages, number)
        except NotEnough as error:
            raise BadModel(f"{model!r}: {error}", fix="take a larger scale or another number of messages") from None
        _write(target, made, variant, model, VARIANTS[variant][1] if variant in VARIANTS else respelled(spelling))
    sizes = json.loads((target / _SIZES).read_text())
    return ModelFiles(tuple(target / name for name in sizes["files"]), sizes["messages"], sizes["bytes"])


def _parsed(model: str) -> tuple[str, int, str]:
    match = _NAME.fullmatch(model)
    family, number, variant = match.group("family", "number", "variant") if match else (model, None, None)
    wants_number = family in NUMBERS or (family == "duplicates" and number is not None)
    has_variant = variant is None or family in VARIANTS[variant][0]
    if family not in FAMILIES or wants_number != (number is not None) or not has_variant:
        raise BadModel(f"there is no message model {model!r}", fix=did_you_mean(model, MODELS))
    return family, int(number or _DISTANCE_OF_DUPLICATES), variant or "jsonl"


def _write(target: Path, made: Messages, variant: str, model: str, form: Form) -> None:
    staging = target.with_name(target.name + ".partial")
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    units = -(-made.units // FILES)
    paths = []
    for number, first in enumerate(range(0, made.units, units)):
        paths.append(staging / f"part-{number}.{variant}")
        with open(paths[-1], "wb") as file:
            file.writelines(form(made.chunks(first, min(first + units, made.units))))
    messages, size = made.units * made.lines_per_unit, sum(path.stat().st_size for path in paths)
    sizes = {
        "model": model, "messages": messages, "bytes": size, "bytes_per_message": round(size / messages, 1),
        "files": [path.name for path in paths],
    }  # fmt: skip
    (staging / _SIZES).write_text(json.dumps(sizes, indent=1) + "\n")
    staging.rename(target)


def _ddl(fields: Mapping[str, str]) -> str:
    return ", ".join(f"{quote_name(name)} {kind}" for name, kind in fields.items())


def _struct(fields: Mapping[str, str]) -> str:
    return f"STRUCT<{', '.join(f'{quote_name(name)}: {kind}' for name, kind in fields.items())}>"


def _array(fields: Mapping[str, str]) -> str:
    return f"ARRAY<{_struct(fields)}>"


_MESSAGE = {"msgId": "BIGINT", "type": "STRING"}
_ORDER = {**_MESSAGE, **COLUMNS["orders"]}
_CUSTOMER, _NATION, _REGION = COLUMNS["customers"], COLUMNS["nations"], COLUMNS["regions"]
_NESTED_NATION = {name: kind for name, kind in _NATION.items() if name != "NNATIONKEY"}
_NESTED_CUSTOMER = {name: kind for name, kind in _CUSTOMER.items() if name != "CNATIONKEY"}
_CAR = {
    "obd2_Vehicle_Identification_Number_(VIN)": "STRING", "timestamp": "BIGINT", "latitude": "DOUBLE",
    "longitude": "DOUBLE", "altitude": "BIGINT",
    **dict.fromkeys((
        "Diagnostic_Trouble_Codes", "Trouble_Codes", "Distance_traveled_with_MIL_on", "Distance_since_codes_cleared",
        "Vehicle_Speed", "Engine_RPM", "Engine_Load", "Absolute_Load", "Throttle_Position", "Engine_Runtime",
        "Mass_Air_Flow", "Engine_Coolant_Temperature", "Engine_Oil_Temperature", "Air_Intake_Temperature",
        "Ambient_Air_Temperature", "Intake_Manifold_Pressure", "Barometric_Pressure", "Fuel_Type", "Fuel_Level",
        "Fuel_Consumption_Rate", "Short_Term_Fuel_Trim_Bank_1", "Long_Term_Fuel_Trim_Bank_1",
        "Control_Module_Power_Supply",
    ), "STRING"),
}  # fmt: skip
_FIELDS_OF_FAMILY = {
    "orders": _ORDER,
    "customers": {**_MESSAGE, **_CUSTOMER},
    "nations": {**_MESSAGE, **_NATION},
    "regions": {**_MESSAGE, **_REGION},
    "multi": {**_MESSAGE, "customer": _struct(_CUSTOMER), "nations": _array(_NATION), "regions": _array(_REGION)},
    "nested": {**_MESSAGE, "customers": _array({**_NESTED_CUSTOMER, "nation": _struct(_NESTED_NATION)})},
    "scaled": {**_ORDER, "customers": _array(_CUSTOMER)},
    "collections": {**_MESSAGE, "orders": _array(_ORDER)},
    "fields": {"order": "BIGINT", **_ORDER},
    "entries": {name: _ORDER[name] for name in (*HEAD, *(name for name in _ORDER if name not in (*HEAD, TAIL)), TAIL)},
    "sequences": {**_ORDER, "group": "BIGINT", "position": "BIGINT"},
    "duplicates": _ORDER,
    "cars": _CAR,
    "owners": dict.fromkeys(("VIN", "name", "city", "policy", "insured_since"), "STRING"),
}
_JSON_MODELS = {
    f"{family}-{number}" if number else family: family
    for family in FAMILIES
    for number in NUMBERS.get(family, [None])
}
SCHEMAS = {model: _ddl(_FIELDS_OF_FAMILY[family]) for model, family in _JSON_MODELS.items()}
"""The fields of every JSON model as DDL; where messages have different fields, all of them."""
MODELS = (*SCHEMAS, *(f"{model}-{variant}" for variant, (models, _) in VARIANTS.items() for model in sorted(models)))
ORDER = SCHEMAS["orders"]
