"""penstock dead: list, show and replay dead letters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.dead_replay import replay, say_unfinished
from penstock.cli.output import aligned, say
from penstock.errors import BadEndpoint

if TYPE_CHECKING:
    from penstock.dead.letter import Letter
    from penstock.dead.store import Store

LIMIT = 100
_APP = "app.py, app.py:name, module:name or routes.yaml"
_WHERE = "Only letters for which this is true, like \"error = 'ScriptFailed' AND step = 'price'\"."
_TOPICS = ("step", "error", "attempt", "time", "replays", "id", "position", "parent", "headers", "attachments")

commands = typer.Typer(help="Look at dead letters, and send them through the app again.", no_args_is_help=True)

AppName = Annotated[str, typer.Argument(help=_APP)]
Where = Annotated[str | None, typer.Option(help=_WHERE)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, one line for each letter.")]


@commands.command("list")
def list_letters(
    app: AppName,
    where: Where = None,
    limit: Annotated[int, typer.Option(min=1, help="Print at most so many.")] = LIMIT,
    as_json: AsJson = False,
) -> None:
    """List the dead letters of an app."""
    store = _store(app)
    found = _chosen(store, where)
    if as_json:
        for letter in found[:limit]:
            say(json.dumps(letter.record(), ensure_ascii=False))
    elif found:
        say(_table(found[:limit]))
        if len(found) > limit:
            say(f"... and {len(found) - limit:,} more: --limit {len(found)} shows all")
    else:
        say("no dead letters" if where is None else "no dead letter is like that")
    say_unfinished(store)


@commands.command()
def show(
    app: AppName,
    letter: Annotated[str, typer.Argument(help="The name of a letter, or its beginning.")],
    as_json: AsJson = False,
) -> None:
    """Show everything about one dead letter: the error, the message, its body."""
    from penstock.dead.store import letters

    found = [one for one in letters(_store(app)) if one.name.startswith(letter)]
    if len(found) != 1:
        fix = "penstock dead list shows their names" if not found else ", ".join(one.name for one in found[:10])
        what = "no dead letter has" if not found else f"{len(found)} dead letters have"
        raise BadEndpoint(f"{what} a name that begins with {letter!r}", None, fix)
    say(json.dumps(found[0].record(), ensure_ascii=False) if as_json else _everything(found[0]))


commands.command()(replay)


def _store(app: str) -> Store:
    from penstock.dead.store import store_of
    from penstock.route.load import load

    return store_of(load(app))


def _chosen(store: Store, where: str | None) -> list[Letter]:
    from penstock.dead.choose import chooser
    from penstock.dead.store import letters

    return list(filter(chooser(where), letters(store)))


def _table(found: list[Letter]) -> str:
    rows = [("letter", "time", "step", "error", "try", "replayed", "message")]
    for letter in found:
        record, dead = letter.record(), letter.dead
        replayed = {0: "no", 1: "yes"}.get(letter.replays, f"{letter.replays} times")
        where, tries = f"{dead.route}.{dead.step}", str(dead.attempt)
        rows.append((letter.name, record["time"], where, dead.error, tries, replayed, dead.message.id))
    return aligned(rows)


def _everything(letter: Letter) -> str:
    record = letter.record()
    part = f"{record['parent']}, part {record['index']} of {record['count']}" if record["parent"] else None
    shown = record | {
        "step": f"{record['route']}.{record['step']}",
        "error": f"{record['error']}: {record['reason']}",
        "position": f"{record['topic']}/{record['partition']}/{record['offset']}",
        "parent": part,
        "headers": ", ".join(f"{name}={value}" for name, value in record["headers"].items()),
        "attachments": ", ".join(record["attachments"]),
    }
    lines = [f"{'letter':<12}{letter.name}"]
    lines += [f"{topic:<12}{shown[topic]}" for topic in _TOPICS if shown[topic] not in (None, "")]
    if record["fields"] is not None:
        lines += [f"{'fields':<12}{record['fields']}"]
    lines += ["", f"body ({record['encoding']})", record["body"]]
    return "\n".join(lines)
