"""penstock dead: what could not go on, why, and another try."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.output import say
from penstock.cli.progress import Progress
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


class At(StrEnum):
    STEP = "step"
    START = "start"


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
    _say_unfinished(store)


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


@commands.command()
def replay(
    app: AppName,
    where: Where = None,
    at: Annotated[At, typer.Option(help="Where they go on: at the step that failed, or at the start.")] = At.STEP,
    source: Annotated[str | None, typer.Option(help="Start: the route that read them, if there are several.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Also those that were replayed before.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say which letters it would be.")] = False,
    master: Annotated[str | None, typer.Option(help="The Spark master, like spark://host:7077.")] = None,
) -> None:
    """Send dead letters through the app again, to its real sinks, and note that they were."""
    from penstock.dead.choose import chooser
    from penstock.dead.replay import finish
    from penstock.dead.replay import replay as send
    from penstock.dead.store import letters, locked, store_of
    from penstock.reference.resume import entrances
    from penstock.route.load import load

    loaded, test = load(app), chooser(where)
    plan, store = loaded.plan, store_of(loaded)

    def choose() -> list[Letter]:
        return [one for one in letters(store) if (again or not one.replays) and test(one)]

    found, unfinished = choose(), any(one.pending for one in store.replays())
    entering = entrances(plan, [one.dead for one in found], at, source)  # what cannot go on is said before Spark starts
    if dry_run and found:
        say(_table(found[:LIMIT]))
        say(f"{_letters(len(found))} would come again as {_messages(len(entering))}")
    if dry_run:
        _say_unfinished(store)
    if not found and not (unfinished and not dry_run):
        say("nothing to replay")
    if dry_run or not (found or unfinished):
        return
    with locked(store), Progress("starting Spark") as progress:
        for done in finish(loaded, store):
            say(f"finished replay {done.key}, which had been interrupted: {_letters(len(done.letters))}")
        found = choose()
        if not found:
            return
        from penstock.spark.session import session

        spark = session(loaded.name, master)
        progress.say("replaying")
        result = send(loaded, store, found, at, source, spark)
    from penstock.summary import text

    say(text(result.summary))
    say(f"replayed {_letters(len(found))} at the {'step that failed' if at is At.STEP else 'start'}")


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
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = ([f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)] for row in rows)
    return "\n".join("  ".join(row).rstrip() for row in padded)


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


def _say_unfinished(store: Store) -> None:
    for one in store.replays():
        if one.pending:
            say(f"replay {one.key} was interrupted: the next penstock dead replay finishes it")


def _letters(count: int) -> str:
    return "1 dead letter" if count == 1 else f"{count:,} dead letters"


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count:,} messages"
