"""penstock diagram: an app as a picture."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from penstock.cli.output import say, write
from penstock.errors import BadFile, did_you_mean

_ENDINGS = {".svg": "svg", ".mmd": "mermaid", ".md": "mermaid", ".mermaid": "mermaid"}


def diagram(
    app: Annotated[str, typer.Argument(help="app.py, app.py:name, module:name or routes.yaml")],
    output: Annotated[str | None, typer.Option("-o", "--output", help="Write to this file, .svg or .mmd.")] = None,
    counts: Annotated[str | None, typer.Option(help="The numbers of a run, from its --summary or --metrics.")] = None,
    format: Annotated[str | None, typer.Option(help="svg or mermaid; otherwise the file's ending says it.")] = None,
) -> None:
    """Draw an app as SVG or as a Mermaid flowchart."""
    from penstock.route.load import load

    chosen = format or _by_ending(output)
    if chosen not in ("svg", "mermaid"):
        raise BadFile(f"there is no diagram format {chosen!r}", None, did_you_mean(chosen, ("svg", "mermaid")))
    plan = load(app).plan
    if chosen == "svg":
        from penstock.plan.svg import svg as draw
    else:
        from penstock.plan.diagram import mermaid as draw
    text = draw(plan, _numbers(counts) if counts else None)
    if output:
        write(output, text)
    else:
        say(text.rstrip("\n"))


def _numbers(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            numbers = json.load(file)
    except OSError as error:
        raise BadFile(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        numbers = None
    if not isinstance(numbers, dict) or "delivered" not in numbers:
        raise BadFile(f"{path} does not hold the numbers of a run", None, "write it with penstock run --summary")
    return numbers


def _by_ending(output: str | None) -> str:
    if output is None:
        return "mermaid"
    for ending, name in _ENDINGS.items():
        if output.endswith(ending):
            return name
    raise BadFile(f"cannot tell the format of {output}", None, "end it in .svg or .mmd, or give --format")
