"""penstock log: the message log, its server and its messages."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli import log_topics
from penstock.cli.log_options import (
    SERVER,
    Authority,
    Create,
    ServerName,
    Token,
    TokenFile,
    TopicName,
    address_of,
    token_of,
    topic_of,
)
from penstock.cli.log_output import show
from penstock.cli.output import complain, say
from penstock.cli.stopping import Stopping
from penstock.errors import BadEndpoint, BadExpression, counted
from penstock.log.numbers import whole_number

if TYPE_CHECKING:
    from penstock.log.client.address import Address
    from penstock.log.client.cursors import Messages

_EXAMPLES = (
    "penstock log serve data                              serve the log in the directory data",
    "penstock log topics --create orders                  make a topic; penstock log delete orders removes it",
    "penstock log push orders '{\"id\": 1}'                 one message; without any, the lines of standard input",
    "penstock log tail -f orders --where 'total < 100'    watch; the server filters",
    "penstock log pull orders --offset 0 --most 10        a range",
    "curl -d hello localhost:19996/topics/orders/messages the same over HTTP; GET / lists what there is",
    "PENSTOCK_LOG_SERVER holds the address, PENSTOCK_LOG_TOKEN the token or PENSTOCK_LOG_TOKEN_FILE its file.",
)

commands = typer.Typer(
    help="A durable message log: serve it, push to it, read it.", epilog="\n\n".join(_EXAMPLES), no_args_is_help=True
)

Where = Annotated[str, typer.Option(help="Only messages for which this is true, like \"total < 9 AND status = 'P'\".")]
Select = Annotated[
    list[str] | None, typer.Option(help="Make new messages of expressions, like id=id or gross='total * 1.19'.")
]
Schema = Annotated[str, typer.Option(help="The types of fields, where expressions do not show them: 'id BIGINT, ...'.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON lines with offset, time and key.")]
Partition = Annotated[int | None, typer.Option("--partition", "-p", min=0, help="The partition; else all.")]


class Mode(StrEnum):
    MEMORY = "memory"
    WRITTEN = "written"
    FSYNCED = "fsynced"


@commands.command()
def serve(
    directory: Annotated[Path, typer.Argument(help="Where the log is, or shall be.")],
    host: Annotated[str, typer.Option(help="Listen here; elsewhere than at loopback only with a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="TCP; 0 is any, -1 none.", min=-1, max=65535)] = 19997,
    http_port: Annotated[int, typer.Option(help="HTTP.", min=-1, max=65535)] = 19996,
    push_port: Annotated[int, typer.Option(help="UDP, pushes.", min=-1, max=65535)] = 19999,
    pull_port: Annotated[int, typer.Option(help="UDP, pulls.", min=-1, max=65535)] = 19998,
    token: Token = "",
    token_file: TokenFile = "",
    certificate: Annotated[str | None, typer.Option(help="Use TLS for TCP and HTTP: a PEM file.")] = None,
    key: Annotated[str | None, typer.Option(help="The certificate's private key, if in a file of its own.")] = None,
    create: Create = None,
    keep_bytes: Annotated[int | None, typer.Option(help="Keep about so many bytes of a partition.", min=1)] = None,
    keep_hours: Annotated[float | None, typer.Option(help="Remove messages that are older.", min=0)] = None,
    kafka: Annotated[str, typer.Option(help="Keep the messages in this Kafka: host:port, or several.")] = "",
    kafka_prefix: Annotated[str, typer.Option(help="What the names of its topics begin with.")] = "",
    kafka_option: Annotated[
        list[str] | None,
        typer.Option(envvar="PENSTOCK_KAFKA_OPTIONS", help="A setting of its client, like security.protocol=ssl."),
    ] = None,
    kafka_fsync: Annotated[bool, typer.Option(help="Its topics flush every append: fsynced can be promised.")] = True,
) -> None:
    """Serve a log over TCP, HTTP and UDP until Ctrl-C or SIGTERM; then everything is answered and fsynced."""
    from penstock.cli.log_kafka import last_level
    from penstock.log.log import Log
    from penstock.log.server.listening import Listening
    from penstock.log.server.serve import Server
    from penstock.log.settings import Retention, Settings

    tcp, http, pushes, pulls = (None if number < 0 else number for number in (port, http_port, push_port, pull_port))
    listening = Listening(host, tcp, http, pushes, pulls, token_of(token, token_file), certificate, key)
    retention = Retention(keep_bytes, None if keep_hours is None else keep_hours * 3600)
    last = last_level(kafka, kafka_prefix, kafka_option or (), kafka_fsync)
    with Stopping() as stopping, Log(directory, Settings(retention=retention, last=last)) as log:
        for finding in log.findings():
            complain(str(finding))
        for name, count in map(topic_of, create or ()):
            log.create(name, count)
        with Server(log, listening) as server:
            say(_serving(directory, server, last.servers if last else ""))
            sys.stdout.flush()
            stopping.wait()
            say("stopping: what has begun is finished, what is new is refused")
    say("stopped: everything is in Kafka" if last else "stopped: everything is fsynced")


def _serving(directory: Path, server: Any, kafka: str) -> str:
    at, scheme = server.listening.host, "https" if server.listening.certificate else "http"
    place = f"{directory}, its messages in Kafka at {kafka}" if kafka else str(directory)
    lines = [f"serving the log in {place}; Ctrl-C stops"]
    for name, number, form in (
        ("tcp", server.tcp, f"{at}:{{}}"), ("http", server.http, f"{scheme}://{at}:{{}}"),
        ("udp push", server.push, f"{at}:{{}}"), ("udp pull", server.pull, f"{at}:{{}}"),
    ):  # fmt: skip
        if number is not None:
            lines.append(f"  {name:<9} {form.format(number)}")
    return "\n".join(lines)


@commands.command()
def push(
    topic: TopicName,
    messages: Annotated[list[str] | None, typer.Argument(help="Messages; if none, lines of standard input.")] = None,
    key: Annotated[str | None, typer.Option(help="Their key: messages of one key stay in order.")] = None,
    partition: Annotated[int | None, typer.Option("--partition", "-p", min=0, help="Else the key says.")] = None,
    acknowledge: Annotated[Mode, typer.Option(help="When a message counts as pushed.")] = Mode.FSYNCED,
    create: Annotated[int, typer.Option(help="Make the topic with so many partitions if it is not there.", min=0)] = 0,
    server: ServerName = SERVER,
    token: Token = "",
    token_file: TokenFile = "",
    authority: Authority = None,
) -> None:
    """Push messages: those of the command line, or every line of standard input."""
    from penstock.log.client.producer import Producer

    count = 0
    address = address_of(server, token, token_file, authority)
    with Producer(address, acknowledge=str(acknowledge), create=create) as producer:
        for line in map(str.encode, messages) if messages else sys.stdin.buffer:
            value = line if messages else line.rstrip(b"\r\n")
            producer.send(topic, value, key=key, partition=partition)
            count += 1
        producer.flush()
    say(f"pushed {counted(count, 'message')} to {topic}: {acknowledge}")


@commands.command()
def pull(
    topic: TopicName,
    partition: Partition = None,
    offset: Annotated[str, typer.Option(help="Where to begin: an offset, first or next.")] = "first",
    most: Annotated[int, typer.Option("--most", "-n", min=1, help="Print at most so many.")] = 100,
    where: Where = "",
    select: Select = None,
    schema: Schema = "",
    as_json: AsJson = False,
    server: ServerName = SERVER,
    token: Token = "",
    token_file: TokenFile = "",
    authority: Authority = None,
) -> None:
    """Print messages that are there, from an offset on."""
    address = address_of(server, token, token_file, authority)
    consumer = _consumer(topic, partition, _place(offset), where, select, schema, address)
    with consumer, _quiet_pipe():
        ends = {place: consumer.end(*place) for place in consumer.cursors}
        for batch in _until(consumer, ends):
            for message in batch:
                show(message, as_json)
                most -= 1
                if not most:
                    return
            sys.stdout.flush()


@commands.command()
def tail(
    topic: TopicName,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as messages arrive, until Ctrl-C.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="Begin so many before the end.")] = 10,
    partition: Partition = None,
    where: Where = "",
    select: Select = None,
    schema: Schema = "",
    as_json: AsJson = False,
    server: ServerName = SERVER,
    token: Token = "",
    token_file: TokenFile = "",
    authority: Authority = None,
) -> None:
    """Print the last messages, and with -f those that come; --where is evaluated on the server."""
    address = address_of(server, token, token_file, authority)
    consumer = _consumer(topic, partition, "next", where, select, schema, address)
    with consumer, _quiet_pipe():
        ends = {place: cursor.offset for place, cursor in consumer.cursors.items()}
        for place, end in ends.items():
            consumer.seek(*place, max(consumer.first(*place), end - lines))
        for batch in consumer.batches() if follow else _until(consumer, ends):
            for message in batch:
                show(message, as_json)
            sys.stdout.flush()


for _command in (log_topics.topics, log_topics.delete, log_topics.stats):
    commands.command()(_command)


@commands.command()
def check(
    directory: Annotated[Path, typer.Argument(help="Where the log is.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
) -> None:
    """Read every byte of a log and say what is damaged, and where. Nothing is changed. Ends with 1 if anything is."""
    from penstock.log.check import check as look

    found = look(directory)
    if as_json:
        shown = dataclasses.asdict(found) | {"is_sound": found.is_sound}
        say(json.dumps(shown))
    else:
        for note in found.notes:
            say(f"note: {note}")
        for damage in found.damages:
            say(f"damaged: {damage}")
        verdict = "sound" if found.is_sound else f"{counted(len(found.damages), 'place')} damaged"
        say(f"{verdict}: {counted(found.topics, 'topic')}, {counted(found.partitions, 'partition')}, "
            f"{counted(found.segments, 'segment')}, {counted(found.messages, 'message')}, {found.bytes:,} bytes")
    if not found.is_sound:
        raise typer.Exit(1)


def _place(text: str) -> str | int:
    if text in ("first", "next"):
        return text
    offset = whole_number(text)
    if offset is None:
        raise BadEndpoint(f"{text!r} is not an offset", None, "give a number, first or next")
    return offset


def _consumer(topic: str, partition: int | None, start: str | int, where: str, select: list[str] | None, schema: str,
              address: Address) -> Any:  # fmt: skip
    from penstock.log.client.consumer import Consumer
    from penstock.log.output import output_function

    made = {}
    for text in select or ():
        name, equals, expression = text.partition("=")
        if not equals or not name.strip():
            raise BadExpression(f"{text!r} does not say what to make", None, "write name=expression")
        made[name.strip()] = expression
    output_function(where, tuple(made.items()), schema)  # mistakes are found here, with their place
    chosen = None if partition is None else [partition]
    return Consumer(topic, server=address, partitions=chosen, start=start, where=where, select=made, schema=schema,
                    retry_for=5.0)  # fmt: skip


def _until(consumer: Any, ends: dict[tuple[str, int], int]) -> Any:
    """What is there now, and no more."""
    while True:
        reached = [place for place, cursor in consumer.cursors.items() if cursor.offset >= ends[place]]
        for place in reached:
            consumer.stop(*place)
        found: list[Messages] = consumer.poll(1.0) if consumer.cursors else consumer.left()
        if not found and not consumer.cursors:
            return
        yield from found


class _quiet_pipe:
    """A reader that has seen enough, like `head`, is no failure."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return True
        if isinstance(error, KeyboardInterrupt):
            raise typer.Exit(0)
        return False
