"""penstock dead replay: send dead letters through their app again, and through what its steps remember."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.output import aligned, say
from penstock.cli.progress import Progress
from penstock.errors import BadEndpoint, BadFile, counted

if TYPE_CHECKING:
    from penstock.dead.letter import Letter
    from penstock.dead.outlook import Outlook
    from penstock.dead.store import Store


class At(StrEnum):
    STEP = "step"
    START = "start"


def replay(
    app: Annotated[str, typer.Argument(help="app.py, app.py:name, module:name or routes.yaml")],
    where: Annotated[
        str | None, typer.Option(help="Only letters for which this is true, like \"error = 'ScriptFailed'\".")
    ] = None,
    at: Annotated[At, typer.Option(help="Where they go on: at the step that failed, or at the start.")] = At.STEP,
    source: Annotated[str | None, typer.Option(help="Start: the route that read them, if there are several.")] = None,
    checkpoint: Annotated[
        str | None, typer.Option(help="The checkpoint of the stream whose steps remember them.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="With an empty memory: for letters of batch runs, which keep none.")
    ] = False,
    body: Annotated[str | None, typer.Option(help="A file with the corrected body of the one letter chosen.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Also those that were replayed before.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it would do.")] = False,
    master: Annotated[str | None, typer.Option(help="The Spark master, like spark://host:7077.")] = None,
) -> None:
    """Send dead letters through the app again, to its real sinks, and note that they were."""
    from penstock.dead.choose import chooser
    from penstock.dead.outlook import outlook
    from penstock.dead.replay import check_memory
    from penstock.dead.store import letters, store_of
    from penstock.route.load import load

    loaded, test = load(app), chooser(where)
    store = store_of(loaded)

    def choose() -> list[Letter]:
        found = [one for one in letters(store) if (again or not one.replays) and test(one)]
        return found if body is None or not found else [_corrected(found, body)]

    known = outlook(loaded.plan, choose(), at, source)  # what cannot be is said before Spark starts
    if dry_run:
        _foretell(known, store)
        if known.memory is not None and not checkpoint and not fresh:
            say(f"step {known.memory.title!r} remembers messages: replay with --checkpoint DIR, or --fresh")
        return
    check_memory(known, checkpoint, fresh)
    unfinished = any(one.pending for one in store.replays())
    if not known.taken:
        say(f"nothing to replay{_left_out(known)}")
    if not known.taken and not unfinished:
        return
    from penstock.dead.replay import finish
    from penstock.dead.replay import replay as send
    from penstock.dead.store import locked
    from penstock.summary import text

    with locked(store), Progress("starting Spark") as progress:
        for done in finish(loaded, store):
            say(f"finished replay {done.key}, which had been interrupted: {_letters(len(done.letters))}")
        known = outlook(loaded.plan, choose(), at, source)
        if not known.taken:
            return
        from penstock.spark.session import session

        spark = session(loaded.name, master)
        progress.say("replaying")
        result = send(loaded, store, known.taken, at, source, spark, checkpoint, fresh)
    say(text(result.summary))
    say(f"replayed {_letters(len(known.taken))} at the {_entrance(at, body)}{_left_out(known)}")


def _corrected(found: list[Letter], body: str) -> Letter:
    from penstock.dead.outlook import corrected

    if len(found) != 1:
        raise BadEndpoint(f"--body is for one letter, and {len(found)} are chosen",
                          fix=f"choose it: --where \"letter = '{found[0].name}'\"")  # fmt: skip
    try:
        with open(body, "rb") as file:
            content = file.read()
    except OSError as error:
        raise BadFile(f"cannot read {body}: {error.strerror}", None, "give the file with the corrected body") from None
    return corrected(found[0], content.removesuffix(b"\n").removesuffix(b"\r"))


def _foretell(known: Outlook, store: Store) -> None:
    if known.places:
        rows = [("letters", "died at", "error", "enters at")]
        rows += [(f"{count:,}", *about) for about, count in sorted(known.places.items())]
        say(aligned(rows))
        coming = f"{_letters(len(known.taken))} would come again as {counted(known.messages, 'message')}"
        say(f"{coming}{_left_out(known)}" if known.taken else f"nothing to replay{_left_out(known)}")
    else:
        say("nothing to replay")
    say_unfinished(store)


def say_unfinished(store: Store) -> None:
    for one in store.replays():
        if one.pending:
            say(f"replay {one.key} was interrupted: the next penstock dead replay finishes it")


def _entrance(at: At, body: str | None) -> str:
    return "step that failed" if at is At.STEP and body is None else "start"


def _left_out(known: Outlook) -> str:
    count = len(known.left_out)
    if not count:
        return ""
    return f"; {_letters(count)} left out: {'its body' if count == 1 else 'their bodies'} cannot be decoded now either"


def _letters(count: int) -> str:
    return counted(count, "dead letter")
