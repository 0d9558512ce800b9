"""penstock trace: the path of one message, in plain Python."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.output import say
from penstock.endpoints.files import Files
from penstock.errors import BadFile, BadRoute
from penstock.formats import Json
from penstock.formats.jsonfiles import first_body
from penstock.formats.opening import UNREADABLE, open_file

if TYPE_CHECKING:
    from penstock.plan.plan import Entry, Plan
    from penstock.reference.run import Trace


def trace(
    app: Annotated[str, typer.Argument(help="app.py, app.py:name, module:name or routes.yaml")],
    message: Annotated[str, typer.Argument(help="A file, - for standard input, or the message itself.")],
    route: Annotated[str | None, typer.Option(help="The route whose source gets the message.")] = None,
    header: Annotated[list[str] | None, typer.Option(help="A header as name=value; may be repeated.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the way of one message: each step, the value of each condition, and where it ends. Spark is not used."""
    from penstock.message import Message
    from penstock.reference.run import trace as follow
    from penstock.route.load import load

    plan = load(app).plan
    _check_route(plan, route)
    entry = next((one for one in plan.entries if one.route == route), plan.entries[0])
    found = follow(plan, Message("", _raw(message, entry), headers=dict(map(_header, header or ()))), route)
    say(json.dumps(_as_json(found), ensure_ascii=False, indent=2, default=str) if as_json else _as_text(found))


def _check_route(plan: Plan, route: str | None) -> None:
    if route is None and len(plan.entries) > 1:
        names = [entry.route for entry in plan.entries]
        raise BadRoute(f"app {plan.name!r} has {len(names)} sources: {', '.join(names)}", None,
                       f"say which one gets the message: --route {names[0]}")  # fmt: skip


def _raw(message: str, entry: Entry) -> bytes:
    """The bytes of a message; of a file of several, the first one, as a run would read it."""
    if message == "-":
        return _first(sys.stdin.buffer.read(), lines=False)
    if os.path.isfile(message):
        if isinstance(entry.source, Files) and isinstance(entry.format, Json):
            return _first_message(message, entry.source.records)
        with open(message, "rb") as file:
            return _first(file.read(), lines=message.endswith((".jsonl", ".ndjson")))
    if message.lstrip()[:1] in ("{", "[", "<", '"') or any(sign in message for sign in " ,\n"):
        return message.encode("utf-8", "surrogateescape")
    raise BadFile(f"there is no file {message}", None, "give a file, - for standard input, or the message in quotes")


def _first_message(path: str, records: str | None) -> bytes:
    try:
        found = first_body(partial(open_file, path), records)
    except UNREADABLE as error:
        raise BadFile(f"cannot read {path}: {error}", None, "give another file, or the message itself") from None
    if found is None:
        raise BadFile(f"{path} holds no message", None, "give another file, or the message itself")
    return found


def _first(raw: bytes, lines: bool) -> bytes:
    kept = next((line for line in raw.split(b"\n") if line.strip()), b"") if lines else raw
    return kept.removesuffix(b"\n").removesuffix(b"\r")


def _header(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise BadFile(f"{text!r} is not a header", None, "write --header name=value")
    return name, value


def _as_text(found: Trace) -> str:
    lines = [str(found)] if found.steps else []
    for channel, messages in found.outcome.channels.items():
        lines += [f"delivered to {channel}: {message.raw.decode('utf-8', 'replace')}" for message in messages]
    lines += [f"filtered by {step}" for step, count in found.outcome.filtered.items() for _ in range(count)]
    lines += [f"dead letter of {dead.route}.{dead.step}: {dead.error}: {dead.reason}" for dead in found.outcome.dead]
    lines += [f"held: {found.outcome.held}"] if found.outcome.held else []
    return "\n".join(lines)


def _as_json(found: Trace) -> dict[str, Any]:
    outcome = found.outcome
    return {
        "steps": [
            {"route": step.route, "step": step.step, "pattern": step.pattern, "outcome": step.outcome,
             "values": [{"expression": text, "value": value} for text, value in step.values]}
            for step in found.steps
        ],
        "delivered": {channel: [message.raw.decode("utf-8", "replace") for message in messages]
                      for channel, messages in outcome.channels.items() if messages},
        "filtered": dict(outcome.filtered),
        "dead": [{"route": dead.route, "step": dead.step, "error": dead.error, "reason": dead.reason}
                 for dead in outcome.dead],
        "held": outcome.held,
    }  # fmt: skip
