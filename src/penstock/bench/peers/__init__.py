"""The systems that EIPBench runs on; each is a process, see `base`."""

from __future__ import annotations

from penstock.bench.peers.base import BATCH, SIZE, USERS, Peer, PythonPeer
from penstock.bench.peers.camel import CamelPeer

_ALL: tuple[Peer, ...] = (
    PythonPeer("penstock", "Penstock", "pyspark", factors=frozenset({USERS, BATCH, SIZE})),
    CamelPeer(),
    PythonPeer("pyspark", "PySpark by hand", "pyspark"),
    PythonPeer("python", "plain Python", "msgspec", one_by_one=True),
    PythonPeer("duckdb", "DuckDB", "duckdb"),
    PythonPeer("polars", "Polars", "polars"),
)
PEERS = {peer.name: peer for peer in _ALL}
