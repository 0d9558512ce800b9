"""penstock log topics, delete and stats: what a server has, and what it has done."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from penstock.cli.log_options import (
    SERVER,
    Authority,
    Create,
    ServerName,
    Token,
    TokenFile,
    TopicName,
    address_of,
    topic_of,
)
from penstock.cli.log_output import statistics, table
from penstock.cli.output import say
from penstock.errors import BadEndpoint, counted
from penstock.log.numbers import whole_number

Most = Annotated[int | None, typer.Option("--most", "-n", min=1, help="At most so many; else all.")]


def topics(
    create: Create = None,
    after: Annotated[str, typer.Option(help="Only topics whose names come after this one.")] = "",
    most: Most = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    server: ServerName = SERVER,
    token: Token = "",
    token_file: TokenFile = "",
    authority: Authority = None,
) -> None:
    """List the topics with their offsets, or make new ones."""
    from penstock.log.client.catalogue import Catalogue

    with Catalogue(address_of(server, token, token_file, authority)) as catalogue:
        for name, count in map(topic_of, create or ()):
            catalogue.create(name, count)
        found = list(catalogue.topics(after, most))
        places = [(topic.name, number) for topic in found for number in range(topic.partitions)]
        rows = [{"topic": topic, "partition": number, "first": ends.first, "next": ends.next, "durable": ends.durable}
                for topic, number, ends in catalogue.ends(places)]  # fmt: skip
    if as_json:
        for row in rows:
            say(json.dumps(row))
    else:
        none = f"no topics after {after}" if after else "no topics: penstock log topics --create NAME makes one"
        say(table(rows) if rows else none)


def delete(
    topic: TopicName,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    server: ServerName = SERVER,
    token: Token = "",
    token_file: TokenFile = "",
    authority: Authority = None,
) -> None:
    """Delete a topic, all its messages and how far groups have read it, for good."""
    from penstock.log.client.catalogue import Catalogue

    with Catalogue(address_of(server, token, token_file, authority)) as catalogue:
        found = catalogue.topic(topic)
        places = [(topic, number) for number in range(found.partitions)]
        lost = counted(sum(ends.next - ends.first for _, _, ends in catalogue.ends(places)), "message")
        if not yes:
            if not sys.stdin.isatty():
                raise BadEndpoint(f"topic {topic!r} has {lost}, and nobody is here to confirm", None,
                                  "say --yes")  # fmt: skip
            typer.confirm(f"Delete topic {topic} with {lost}, for good?", abort=True)
        catalogue.delete(found)
    say(f"deleted {topic}: {lost}")


def stats(
    after: Annotated[str, typer.Option(help="Only partitions after this one: topic/0.")] = "",
    most: Most = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    prometheus: Annotated[bool, typer.Option("--prometheus", help="Print what Prometheus reads.")] = False,
    server: ServerName = SERVER,
    token: Token = "",
    token_file: TokenFile = "",
    authority: Authority = None,
) -> None:
    """What the server and every level have done: hits, misses, batches, and how long messages stay in a level."""
    from penstock.log.client.catalogue import Catalogue
    from penstock.log.server.prometheus import exposition

    topic, _, text = after.rpartition("/")
    number = whole_number(text)
    if after and (not topic or number is None):
        raise BadEndpoint(f"{after!r} is not a partition", None, "write topic/0")
    with Catalogue(address_of(server, token, token_file, authority)) as catalogue:
        values = catalogue.statistics((topic, number) if number is not None else None, most)
    if as_json:
        say(json.dumps(values))
    elif prometheus:
        say(exposition(values).rstrip())
    else:
        say(statistics(values))
