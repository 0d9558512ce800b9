"""penstock demo: see it work."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.output import say


def demo(
    messages: Annotated[int, typer.Option(min=1, help="How many messages to send.")] = 200_000,
    out: Annotated[str, typer.Option(help="Where the results go.")] = "penstock-demo",
) -> None:
    """Run the demonstration: generated messages through a small app, with the results in a directory."""
    from penstock.demo import demo as show

    show(out, messages, say)
