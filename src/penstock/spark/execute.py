"""Write down what a pass will change (its intent), and publish it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from penstock.delivery import EXACTLY_ONCE, includes
from penstock.plan.plan import Plan
from penstock.spark.budget import check_budget
from penstock.spark.manifest import forget
from penstock.spark.write.intent import Intent
from penstock.spark.write.outlets import Target
from penstock.spark.write.publish import Kept, publish
from penstock.spark.write.staging import Staging


@dataclass(frozen=True)
class Executed:
    """A pass that is done: its intent, how many messages came in, what the driver keeps, and how many wait where."""

    intent: Intent
    received: int
    kept: Kept
    staging: Staging
    waiting: Mapping[str, int] = field(default_factory=dict)


def finish(
    intent: Intent,
    plan: Plan,
    targets: Mapping[int, Target],
    staging: Staging,
    first: bool = False,
    record: Callable[[Intent], None] | None = None,
) -> Kept:
    """Record the intent of a pass and publish it, if the pass is within its error budget."""
    try:
        check_budget(plan, intent, targets)
    except BaseException:
        forget(targets, staging)
        raise
    once = plan.remembers or any(includes(target.delivery, EXACTLY_ONCE) for target in targets.values())
    recorded = record is not None and once
    if record is not None and recorded:
        lasting = {target.name for target in targets.values() if target.lasts}
        sealed = msgspec.structs.replace(intent, files=tuple(file for file in intent.files if file.channel in lasting))
        staging.seal(targets.values(), sealed.files)
        record(sealed)
    try:
        return publish(intent, targets, staging, first)
    except BaseException:
        if not recorded:  # nobody will publish it again
            forget(targets, staging)
        raise
