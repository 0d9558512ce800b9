"""The envelope of messages (id, headers, position, time, parent, error) as one column, for sinks and dead letters."""

from __future__ import annotations

from datetime import datetime

import msgspec
import pyarrow as pa

from penstock.envelope import (
    ATTACHMENTS,
    ATTEMPT,
    COUNT,
    ENVELOPE,
    ERROR,
    ERRORS,
    HEADERS,
    ID,
    INDEX,
    OFFSET,
    PARENT,
    PARTITION,
    TIME,
    TOPIC,
)
from penstock.kernel.block import Block
from penstock.kernel.bodies import kept
from penstock.kernel.outcome import Letters
from penstock.kernel.table import columns_of

_FROM_BLOCK = (ID, HEADERS, ATTACHMENTS, TOPIC, PARTITION, OFFSET, TIME, PARENT, INDEX, COUNT)
KNOWN = pa.struct([
    *(ENVELOPE.field(name) for name in _FROM_BLOCK), (ERROR, ERRORS), (ATTEMPT, pa.int32()), ("fields", pa.string()),
])  # fmt: skip


def known(block: Block, time: datetime, letters: Letters | None = None) -> pa.StructArray:
    """The envelope of each message. `time` is for messages whose source gives none."""
    length, columns = len(block), columns_of(block, (*_FROM_BLOCK, ATTEMPT), time)
    columns |= {ERROR: pa.nulls(length, ERRORS), "fields": pa.nulls(length, pa.string())}
    if letters is not None:
        places = [pa.repeat(pa.scalar(place), length) for place in (letters.route, letters.step)]
        said = [pa.array(list(texts), pa.string()) for texts in (letters.died.errors, letters.died.reasons)]
        columns[ERROR] = pa.StructArray.from_arrays([*places, *said], fields=list(ERRORS))
        texts = [None if body is None else msgspec.json.encode(body).decode() for body in kept(block)]
        columns["fields"] = pa.array(texts, pa.string())
    return pa.StructArray.from_arrays([columns[field.name] for field in KNOWN], fields=list(KNOWN))
