"""A push of a connection."""

from __future__ import annotations

from typing import NamedTuple

from penstock.log.frame import Frame
from penstock.log.settings import Acknowledge


class Push(NamedTuple):
    """What a connection wants appended, and what it is answered with."""

    number: int
    size: int
    topic: str
    partition: int
    frame: Frame
    mode: Acknowledge
