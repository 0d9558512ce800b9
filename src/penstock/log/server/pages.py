"""The requests of HTTP: push a message, read a range, list topics and numbers, with `curl`. `HELP` says how."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeout
from http import HTTPStatus
from urllib.parse import unquote, urlsplit

from penstock import __version__
from penstock.errors import PenstockError
from penstock.log.frame import Frame
from penstock.log.numbers import whole_number
from penstock.log.server.handler import JSON_LINES, TEXT, Handler, Missing
from penstock.log.server.listing import topic_page
from penstock.log.server.prometheus import exposition
from penstock.log.server.pulls import STOPPING, Found, look
from penstock.log.server.query import Query
from penstock.log.server.shown import json_lines, lines
from penstock.log.settings import Acknowledge
from penstock.log.topics import partition_of
from penstock.log.wire.errors import BadRequest
from penstock.log.wire.requests import Output, Pull, Topics
from penstock.metrics import CONTENT_TYPE

_LONGEST_WAIT = 60.0
_MOST_MESSAGES = 1000
_MOST_TOPICS = 1000
_MOST_BYTES = 4 << 20
HELP = """\
Penstock log {version}

GET  /topics                        the topics, a page of them: ?after=NAME ?most=1000
PUT  /topics/NAME?partitions=2      create one
DELETE /topics/NAME?confirm=NAME    delete one and all its messages, for good
GET  /topics/NAME                   the first and next offset of its partitions
POST /topics/NAME/messages          the body is a message; with ?lines=1 every line is one
     ?partition=0 ?key=TEXT ?acknowledge=memory|written|fsynced
GET  /topics/NAME/messages          messages as JSON lines; with ?raw=1 their bytes, one per line
     ?partition=0 ?offset=0|first|next ?most=1000 ?wait=SECONDS ?where=EXPRESSION ?schema=DDL ?durable=1
GET  /statistics                    all counters as JSON; of some partitions: ?after=NAME/0 ?most=100
GET  /metrics                       the same for Prometheus

A server with a token wants the header Authorization: Bearer TOKEN.
"""


class Pages(Handler):
    def do_GET(self) -> None:
        self.do({"": self.index, "topics": self.topics, "statistics": self.statistics, "metrics": self.metrics})

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_PUT(self) -> None:
        self.do({"topics": self.create})

    def do_DELETE(self) -> None:
        self.do({"topics": self.delete})

    def do_POST(self) -> None:
        self.do({"topics": self.post})

    def do(self, known: dict[str, Callable[[list[str], Query], None]]) -> None:
        def answer() -> None:
            try:
                address = urlsplit(self.path)
            except ValueError as error:
                raise BadRequest(f"{self.path[:200]!r} is not an address: {error}") from None
            parts = [unquote(part) for part in address.path.strip("/").split("/")]
            if parts[0] not in known:
                raise Missing(f"{self.command} {address.path} is nothing", None, "GET / lists what there is")
            known[parts[0]](parts[1:], Query(address.query))

        self.guarded(answer)

    def index(self, rest: list[str], query: Query) -> None:
        self.send(HELP.format(version=__version__).encode(), TEXT)

    def statistics(self, rest: list[str], query: Query) -> None:
        after, most = query.text("after"), query.integer("most", 0)
        query.end()
        if not after and not most:
            self.send_json(self.service.statistics())
            return
        topic, _, text = after.rpartition("/")
        number = whole_number(text)
        if after and (not topic or number is None):
            raise BadRequest(f"after={after} is not a partition", None, "write it as NAME/0")
        values, next = self.service.statistics_page((topic, number) if number is not None else None, most)
        self.send_json(values, headers={} if next is None else {"Penstock-Next": f"{next[0]}/{next[1]}"})

    def metrics(self, rest: list[str], query: Query) -> None:
        self.send(exposition(self.service.statistics()).encode(), CONTENT_TYPE)

    def topics(self, rest: list[str], query: Query) -> None:
        log = self.service.log
        if not rest:
            asked = Topics(after=query.text("after"), most=query.integer("most", _MOST_TOPICS, 1))
            query.end()
            page = topic_page(log.topics(), asked)
            headers = {"Penstock-Next": list(page.topics)[-1]} if page.more else {}
            self.send_json({name: {"partitions": count} for name, count in page.topics.items()}, headers=headers)
        elif len(rest) == 1:
            topic = log.topics().get(rest[0])
            ends = [log.ends(rest[0], number) for number in range(topic.partitions if topic else 1)]
            self.send_json({"topic": rest[0], "partitions": [
                {"partition": number, "first": one.first, "next": one.next, "durable": one.durable}
                for number, one in enumerate(ends)
            ]})  # fmt: skip
        elif rest[1:] == ["messages"]:
            self.messages(rest[0], query)
        else:
            raise Missing(f"{self.path} is nothing", None, "GET / lists what there is")

    def create(self, rest: list[str], query: Query) -> None:
        if len(rest) != 1:
            raise Missing(f"{self.path} is nothing", None, "PUT /topics/NAME creates a topic")
        partitions = query.integer("partitions", 1, 1)
        query.end()
        if self.service.is_stopping.is_set():
            raise STOPPING
        topic = self.service.log.create(rest[0], partitions)
        self.send_json({"topic": topic.name, "partitions": topic.partitions}, HTTPStatus.CREATED)

    def delete(self, rest: list[str], query: Query) -> None:
        if len(rest) != 1:
            raise Missing(f"{self.path} is nothing", None, "DELETE /topics/NAME?confirm=NAME deletes a topic")
        confirmed = query.text("confirm")
        query.end()
        if self.service.is_stopping.is_set():
            raise STOPPING
        self.service.log.ends(rest[0], 0)
        if confirmed != rest[0]:
            raise BadRequest(f"topic {rest[0]!r} and all its messages would be gone for good", None,
                             f"say that you mean it: ?confirm={rest[0]}")  # fmt: skip
        self.service.log.delete(rest[0])
        self.send_json({"topic": rest[0], "deleted": True})

    def post(self, rest: list[str], query: Query) -> None:
        if rest[1:] != ["messages"]:
            raise Missing(f"{self.path} is nothing", None, "POST /topics/NAME/messages pushes a message")
        topic, key = rest[0], query.text("key")
        is_lines = query.flag("lines") or self.headers.get_content_type() == JSON_LINES
        mode = Acknowledge.of(query.text("acknowledge", "fsynced"))
        known = self.service.log.topics().get(topic)
        usual = partition_of(key.encode(), known.partitions) if key and known else 0
        partition = query.integer("partition", usual)
        query.end()
        values = [line for line in self.body.splitlines() if line] if is_lines else [self.body]
        if not values:
            raise BadRequest("no line has anything in it")
        keys = [key.encode()] * len(values) if key else None
        future = self.service.append(topic, partition, Frame.pack(values, keys=keys), mode)
        try:
            receipt = future.result(_LONGEST_WAIT)
        except FutureTimeout:
            what = f"not {mode} after {_LONGEST_WAIT:g} seconds"
            raise PenstockError(what, None, "it may still come to be") from None
        self.send_json({
            "topic": topic, "partition": partition, "first": receipt.first, "count": receipt.count,
            "acknowledged": str(receipt.acknowledged),
        }, HTTPStatus.CREATED)  # fmt: skip

    def messages(self, topic: str, query: Query) -> None:
        partition = query.integer("partition", 0)
        place = query.text("offset", "first")
        most, wait = query.integer("most", _MOST_MESSAGES, 1), query.number("wait", 0, 0, _LONGEST_WAIT)
        is_raw, durable = query.flag("raw"), query.flag("durable")
        output = Output(query.text("where"), (), query.text("schema"))
        query.end()
        ends = self.service.log.ends(topic, partition)
        offset = {"first": ends.first, "next": ends.next}.get(place, -1)
        if offset < 0:
            query.values = {"offset": place}
            offset = query.integer("offset", 0)
        request = Pull(topic, partition, offset, _MOST_BYTES, most, 0, durable, output)
        body, found = self._pulled(request, wait, is_raw)
        headers = {"Penstock-Next": str(found.next), "Penstock-End": str(found.end)}
        self.send(body, "application/octet-stream" if is_raw else JSON_LINES, headers=headers)

    def _pulled(self, request: Pull, wait: float, is_raw: bool) -> tuple[bytes, Found]:
        """Reads until there is something, the log ends or the time is over."""
        deadline, arrived = time.monotonic() + wait, threading.Event()
        cancel = self.service.log.on_append(request.topic, request.partition, arrived.set) if wait else None
        offset = request.offset
        try:
            while True:
                with self.server.making:
                    found = look(self.service, request, offset)
                    offset = found.next
                    left = deadline - time.monotonic()
                    if found.frames or (not found.examined and (left <= 0 or self.service.is_stopping.is_set())):
                        shown = lines if is_raw else json_lines
                        return b"".join(line for frame in found.frames for line in shown(frame)), found
                if not found.examined:
                    arrived.wait(min(left, 0.2))
                    arrived.clear()
        finally:
            if cancel is not None:
                cancel()
