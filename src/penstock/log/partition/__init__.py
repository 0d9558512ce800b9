"""Partition: gives messages their offsets, puts them into the levels, and acknowledges them when they are safe enough.

It is one class in three files, each of which extends the one before: `reading.py`, `committing.py`, `appending.py`.
"""

from penstock.log.partition.appending import OpenLast, Partition
from penstock.log.partition.reading import deleted

__all__ = ["OpenLast", "Partition", "deleted"]
