"""Notes beside the checkpoint on where a stream began in a topic: the topic, its `start`, and the first offsets.

For a topic of the log its identity is noted too, which tells it from a new topic with the name of a deleted one.
"""

from __future__ import annotations

import os

import msgspec

from penstock.durable import sync, write_whole
from penstock.errors import ChangedApp


class Beginning(msgspec.Struct, frozen=True):
    """The first offset of every partition; topic and start are unknown for streams that an older version began."""

    offsets: dict[str, int]
    topic: str | None = None
    start: str | None = None
    identity: str = ""


def noted(path: str) -> Beginning | None:
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        return None
    found = msgspec.json.decode(content)
    return msgspec.convert(found if "offsets" in found else {"offsets": found}, Beginning)


def note(path: str, beginning: Beginning) -> None:
    directory = os.path.dirname(path)
    os.makedirs(directory, exist_ok=True)
    write_whole(path, msgspec.json.encode(beginning))
    sync(os.path.dirname(directory))


def check(path: str, route: str, topic: str, start: str, has_batches: bool) -> None:
    """Compare the note with the topic and the `start` that the app asks for now.

    Before the first batch the app may ask for another place: the note is removed. After it another topic is an error,
    and another `start` means nothing, because the stream goes on where it is.
    """
    known = noted(path)
    if known is None or known.topic is None:
        return
    if has_batches and known.topic != topic:
        raise ChangedApp(f"route {route!r} reads topic {topic!r} now, and the checkpoint is of topic {known.topic!r}",
                         fix=f"read {known.topic!r} as before, or start with a new checkpoint")  # fmt: skip
    if not has_batches and (known.topic, known.start) != (topic, start):
        os.remove(path)
