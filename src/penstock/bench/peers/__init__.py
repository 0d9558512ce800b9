"""The systems that EIPBench runs on; each is a process, see `base`."""

from __future__ import annotations

from penstock.bench.peers.base import BATCH, SIZE, USERS, Peer, PythonPeer
from penstock.bench.peers.camel import CamelPeer

_ALL: tuple[Peer, ...] = (
    PythonPeer("penstock", "Penstock", "penstock", "pyspark", factors=frozenset({USERS, BATCH, SIZE})),
    CamelPeer(),
    PythonPeer("pyspark", "PySpark by hand", "pyspark_by_hand", "pyspark"),
    PythonPeer("python", "plain Python", "python", "msgspec", one_by_one=True),
    PythonPeer("duckdb", "DuckDB", "duckdb_engine", "duckdb"),
    PythonPeer("polars", "Polars", "polars_engine", "polars"),
)
PEERS = {peer.name: peer for peer in _ALL}
