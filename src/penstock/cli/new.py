"""penstock new: a first app, with a test and sample messages."""

from __future__ import annotations

import os
import re
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.output import say
from penstock.errors import BadFile

_ENDING = ".template"


def new(name: Annotated[str, typer.Argument(help="The directory to make; its name is the app's name.")]) -> None:
    """Make a directory with a small app that works, its test, and sample messages."""
    directory = Path(name)
    app = directory.name
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", app):
        raise BadFile(f"{app!r} is not a name for an app", None, "use letters, digits, - and _")
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise BadFile(f"{name} exists already", None, "choose another name: nothing is overwritten")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for file in sorted(resources.files("penstock.cli").joinpath("template").iterdir(), key=lambda file: file.name):
            if file.name.endswith(_ENDING):
                text = file.read_text(encoding="utf-8").replace("@app@", app)
                (directory / file.name.removesuffix(_ENDING)).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadFile(f"cannot write {name}: {error.strerror}") from None
    say(_next_steps(os.path.normpath(name)))


def _next_steps(name: str) -> str:
    return "\n".join([
        f"made {name}/: app.py, test_app.py, messages.jsonl, README.md",
        "",
        f"  cd {name}",
        "  penstock trace app.py messages.jsonl   # the way of the first message",
        "  penstock diagram app.py -o app.svg     # the app as a picture",
        "  penstock run app.py                    # all messages, on Spark",
        "  pytest                                 # the app's test",
    ])  # fmt: skip
