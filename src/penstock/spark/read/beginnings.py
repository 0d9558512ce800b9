"""Where a stream began in a topic, noted beside its checkpoint: in which topic, and with which `start`.

A topic of the log has an identity, too: one that was deleted is told from another that has its name now.
"""

from __future__ import annotations

import os

import msgspec

from penstock.durable import sync, write_whole
from penstock.errors import ChangedApp


class Beginning(msgspec.Struct, frozen=True):
    """The offset of every partition; who asked for it is not known of streams that an older version began."""

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


def settle(path: str, route: str, topic: str, start: str, has_batches: bool) -> None:
    """Compare with what the app asks for now. Until there is a batch another place may be asked for, then no more.

    Another `start` means nothing to a stream that has begun: it goes on where it is.
    """
    known = noted(path)
    if known is None or known.topic is None:
        return
    if has_batches and known.topic != topic:
        raise ChangedApp(f"route {route!r} reads topic {topic!r} now, and the checkpoint is of topic {known.topic!r}",
                         fix=f"read {known.topic!r} as before, or start with a new checkpoint")  # fmt: skip
    if not has_batches and (known.topic, known.start) != (topic, start):
        os.remove(path)
