"""Messages for people: the first ones of each batch, on standard output."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.spark.write.outlets import Target
from penstock.spark.write.publish import Kept


def show(kept: Kept, targets: Mapping[int, Target]) -> None:
    """Print what arrived at console sinks and forget it there."""
    for target in targets.values():
        if target.rows is None:
            continue
        if target.dead:
            for letter in kept.dead[: target.rows]:
                print(f"{target.channel}  {letter.route}.{letter.step}  {letter.error}: {letter.reason}")
            kept.dead.clear()
            continue
        for message in kept.messages.pop(target.channel, [])[: target.rows]:
            print(f"{target.channel}  {message.id}  {message.raw.decode('utf-8', 'replace')}")
