"""The waiting room: files of messages that go on in a later batch.

A file is never changed. A batch takes the messages that became due since the batch before it, so a repeated batch takes
the same ones.
"""

from __future__ import annotations

import os

from penstock.delivery import EXACTLY_ONCE
from penstock.envelope import WAITING
from penstock.formats import Json
from penstock.spark.write.outlets import ROOM, Target

CHANNEL = "waiting messages"


def room(directory: str) -> Target:
    """The waiting room as a sink, which is written and published like any other and read only by us."""
    return Target(WAITING, CHANNEL, ROOM, os.path.join(directory, "waiting"), Json("id STRING"), delivery=EXACTLY_ONCE)
