"""Partition: gives messages their offsets, puts them into the levels, and acknowledges them when it may.

What it does for readers, for the committer and for those who push is in a file each; each adds to the one before.
"""

from penstock.log.partition.appending import OpenLast, Partition
from penstock.log.partition.reading import deleted

__all__ = ["OpenLast", "Partition", "deleted"]
