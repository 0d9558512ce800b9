"""TPC-H orders as JSON messages (EIPBench section 4.1), written once and reused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from penstock.errors import BadMachine

ORDER = (
    "msgId BIGINT, type STRING, OORDERKEY BIGINT, OCUSTKEY BIGINT, OORDERSTATUS STRING, OTOTALPRICE DOUBLE, "
    "OORDERDATE STRING, OORDERPRIORITY STRING, OCLERK STRING, OSHIPPRIORITY BIGINT, OCOMMENT STRING"
)
_BATCH = 50_000
FILES = 4


def order_table(directory: Path, scale: float) -> pa.Table:
    """The orders of a scale factor with the messages' field names and types."""
    path = directory / "orders.parquet"
    if not path.exists():
        generator = shutil.which(
            "tpchgen-cli", path=f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"
        )
        if generator is None:
            raise BadMachine("the benchmark needs tpchgen-cli", fix='pip install "penstock[dev]"')
        directory.mkdir(parents=True, exist_ok=True)
        command = [generator, "parquet", "-s", str(scale), "--tables", "orders", "--output-dir", str(directory)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    table = pyarrow.parquet.read_table(path)
    columns = {"O" + name.removeprefix("o_").upper(): _plain(table[name]) for name in table.column_names}
    columns["OTOTALPRICE"] = pc.cast(columns["OTOTALPRICE"], pa.float64())
    columns["OORDERDATE"] = pc.cast(columns["OORDERDATE"], pa.string())
    numbers = pa.array(range(len(table)), pa.int64())
    return pa.table({"msgId": numbers, "type": pa.repeat("ORDERS", len(table)), **columns})


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column


def order_files(directory: Path, table: pa.Table) -> Path:
    """The messages as JSON lines in a few files."""
    import msgspec

    target = directory / "orders"
    if target.exists():
        return target
    staging = directory / "orders.partial"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    rows = (len(table) + FILES - 1) // FILES
    for number in range(FILES):
        with open(staging / f"orders-{number}.jsonl", "wb") as file:
            for batch in table.slice(number * rows, rows).to_batches(max_chunksize=_BATCH):
                file.write(b"\n".join(msgspec.json.encode(row) for row in batch.to_pylist()) + b"\n")
    staging.rename(target)
    return target
