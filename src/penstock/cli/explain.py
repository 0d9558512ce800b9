"""penstock explain: what an app does, as text."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.output import say


def explain(app: Annotated[str, typer.Argument(help="app.py, app.py:name, module:name or routes.yaml")]) -> None:
    """Check an app and print its plan: sources, steps, fields read, sinks."""
    from penstock.route.load import load

    say(load(app).explain().rstrip("\n"))
