"""penstock convert: an app as YAML."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.output import say, write


def convert(
    app: Annotated[str, typer.Argument(help="app.py, app.py:name, module:name or routes.yaml")],
    output: Annotated[str | None, typer.Option("-o", "--output", help="Write to this file.")] = None,
) -> None:
    """Print an app as YAML."""
    from penstock.route.load import load
    from penstock.route.yaml import to_yaml

    text = to_yaml(load(app))
    if output:
        write(output, text)
    else:
        say(text.rstrip("\n"))
