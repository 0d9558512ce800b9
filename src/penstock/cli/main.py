"""The `penstock` command: which commands there are, and how their failures look."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated

import typer

from penstock.cli import bench, cluster, convert, dead, demo, diagram, doctor, explain, log, new, run, trace
from penstock.cli.output import complain
from penstock.errors import PenstockError

_EXAMPLES = (
    "penstock new orders                    a first app, with a test",
    "penstock trace app.py message.json     the way of one message",
    "penstock diagram app.py -o app.svg     the app as a picture",
    "penstock run app.py                    run it once",
    "penstock run app.py --stream           keep it running",
    "penstock dead replay app.py            send dead letters through it again",
    "penstock log serve data                a message log for others to push to and read from",
    "An app is app.py, app.py:name, package.module:name or routes.yaml.",
)
_COMMANDS = (
    new.new, explain.explain, diagram.diagram, trace.trace, run.run, cluster.cluster, convert.convert, demo.demo,
    doctor.doctor,
)  # fmt: skip

app = typer.Typer(
    name="penstock",
    help="Enterprise Integration Patterns as tables, on Spark.",
    epilog="\n\n".join(_EXAMPLES),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in _COMMANDS:
    app.command()(command)
app.add_typer(dead.commands, name="dead")
app.add_typer(bench.commands, name="bench")
app.add_typer(log.commands, name="log")


def _version(wanted: bool) -> None:
    if wanted:
        from penstock import __version__

        typer.echo(f"penstock {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line and end the process: 2 for a mistake in a route, 1 for one of ours, 130 for Ctrl-C."""
    try:
        app()
    except PenstockError as error:
        complain(str(error))
        sys.exit(2)
    except KeyboardInterrupt:
        complain("stopped")
        sys.exit(130)
    except SystemExit as end:
        if end.code == 130:
            complain("stopped")
        raise
    except Exception as error:
        if os.environ.get("PENSTOCK_DEBUG") == "1":
            traceback.print_exc()
        else:
            said = next(iter(str(error).splitlines()), "")
            complain(f"penstock failed: {type(error).__name__}: {said}\n  fix  PENSTOCK_DEBUG=1 shows the traceback")
        sys.exit(1)
