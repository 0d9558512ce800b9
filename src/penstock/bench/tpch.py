"""The four tables of TPC-H behind the messages of EIPBench (section 4.1), generated once and reused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset

from penstock.errors import BadMachine

COLUMNS = {
    "orders": {
        "OORDERKEY": "BIGINT", "OCUSTKEY": "BIGINT", "OORDERSTATUS": "STRING", "OTOTALPRICE": "DOUBLE",
        "OORDERDATE": "STRING", "OORDERPRIORITY": "STRING", "OCLERK": "STRING", "OSHIPPRIORITY": "BIGINT",
        "OCOMMENT": "STRING",
    },
    "customers": {
        "CCUSTKEY": "BIGINT", "CNAME": "STRING", "CADDRESS": "STRING", "CNATIONKEY": "BIGINT", "CPHONE": "STRING",
        "CACCTBAL": "DOUBLE", "CMKTSEGMENT": "STRING", "CCOMMENT": "STRING",
    },
    "nations": {"NNATIONKEY": "BIGINT", "NNAME": "STRING", "NREGIONKEY": "BIGINT", "NCOMMENT": "STRING"},
    "regions": {"RREGIONKEY": "BIGINT", "RNAME": "STRING", "RCOMMENT": "STRING"},
}  # fmt: skip
"""The fields of each table, in order, with their types."""
_FILES = {"orders": "orders", "customers": "customer", "nations": "nation", "regions": "region"}
_ARROW = {"BIGINT": pa.int64(), "DOUBLE": pa.float64(), "STRING": pa.string()}


def scale_directory(directory: Path, scale: float) -> Path:
    """Where everything of one scale factor is kept."""
    return directory / f"scale-{scale:g}"


def table(directory: Path, name: str, scale: float, rows: int | None = None) -> pa.Table:
    """The rows of `name`, a key of COLUMNS, or the first of them; scale 1 is 1.5 million orders."""
    path = scale_directory(directory, scale) / f"{_FILES[name]}.parquet"
    if not path.exists():
        _generate(path, scale)
    stored = pyarrow.dataset.dataset(path)
    found = stored.to_table() if rows is None else stored.head(rows)
    return pa.table({field: _plain(found[_column(field)], _ARROW[kind]) for field, kind in COLUMNS[name].items()})


def _plain(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_decimal(column.type):  # Arrow's own cast to a double can be the neighbour of the nearest one
        column = column.cast(pa.string())
    return column.cast(kind)


def _column(field: str) -> str:
    return f"{field[0]}_{field[1:]}".lower()


def _generate(path: Path, scale: float) -> None:
    places = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"
    generator = shutil.which("tpchgen-cli", path=places)
    if generator is None:
        raise BadMachine("the benchmark needs tpchgen-cli", fix='pip install "penstock[dev]"')
    staging = path.with_suffix(".partial")
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    command = [generator, "parquet", "-s", str(scale), "--tables", path.stem, "--output-dir", str(staging)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (staging / path.name).rename(path)
    staging.rmdir()
