"""penstock doctor: can this machine run routes?"""

from __future__ import annotations

import typer

from penstock.cli.output import say


def doctor() -> None:
    """Check Python, Java, Spark and the machine, and say what to do where something is missing."""
    from penstock.cli.progress import Progress
    from penstock.spark.doctor import diagnose

    with Progress("looking at this machine"):
        checks = diagnose()
    width = max(len(check.name) for check in checks)
    for check in checks:
        say(f"{'ok' if check.ok else 'FAIL':<4}  {check.name:<{width}}  {check.found}")
        if not check.ok and check.fix:
            say(f"      {'':<{width}}  fix  {check.fix}")
    if not all(check.ok for check in checks):
        raise typer.Exit(1)
