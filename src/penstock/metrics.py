"""The numbers of a run for those who watch it: a file or a page, after every batch, as JSON or for Prometheus."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from penstock.durable import write_whole
from penstock.errors import BadEndpoint, BadFile
from penstock.summary import Latency, Summary

JSON, PROMETHEUS = ".json", ".prom"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_HOST = "127.0.0.1"

Labels = dict[str, str]
Sample = tuple[str, Labels, float]
Family = tuple[str, str, str, list[Sample]]


def exposition(summary: Summary, now: float | None = None) -> str:
    """The text that Prometheus reads; `now` is when the last batch ended, in seconds since 1970."""
    lines: list[str] = []
    for name, kind, meaning, samples in _families(summary, now):
        lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{suffix}{labelled(labels)} {value!r}" for suffix, labels, value in samples]
    return "\n".join(lines) + "\n"


def _families(summary: Summary, now: float | None) -> Iterator[Family]:
    app = {"app": summary.app}
    yield "penstock_batches_total", "counter", "Batches that were published.", [("", app, summary.batches)]
    seconds: list[Sample] = [("_sum", app, summary.seconds), ("_count", app, summary.batches)]
    yield "penstock_batch_seconds", "summary", "How long batches took.", seconds
    if now is not None:
        at: list[Sample] = [("", app, now)]
        yield "penstock_last_batch_timestamp_seconds", "gauge", "When the last batch ended.", at
    yield "penstock_received_messages_total", "counter", "Messages from sources.", [("", app, summary.received)]
    delivered: list[Sample] = [
        ("", {**app, "channel": name}, count) for name, count in sorted(summary.delivered.items())
    ]
    yield "penstock_delivered_messages_total", "counter", "Messages in sinks, by channel.", delivered
    yield "penstock_messages_total", "counter", "Messages at every step, by what became of them.", list(_steps(summary))
    held: list[Sample] = [("", {**app, **_step(title)}, summary.waiting.get(title, 0)) for title in summary.steps]
    yield "penstock_held_messages", "gauge", "Messages that wait at a step.", held
    by_channel = [({**app, "channel": channel}, latency) for channel, latency in sorted(summary.latency.items())]
    yield from _latency("penstock_message_latency", "From the time of a message to its publication.", by_channel)
    by_step = [({**app, **_step(title)}, latency) for title, latency in summary.step_latency.items()]
    meaning = "From the time of a message that came to a step to the publication of its batch."
    yield from _latency("penstock_step_latency", meaning, by_step)


def _steps(summary: Summary) -> Iterator[Sample]:
    for title, step in summary.steps.items():
        counts = {"in": step.received, "out": step.sent, "filtered": step.filtered, "dead": step.dead}
        if step.copied:
            counts["copied" if step.copied > 0 else "merged"] = abs(step.copied)
        for outcome, count in counts.items():
            yield "", {"app": summary.app, **_step(title), "outcome": outcome}, count


def _latency(name: str, meaning: str, found: list[tuple[Labels, Latency]]) -> Iterator[Family]:
    if not found:
        return
    sums: list[Sample] = []
    for labels, latency in found:
        sums += [("_sum", labels, latency.seconds), ("_count", labels, latency.messages)]
    yield f"{name}_seconds", "summary", meaning, sums
    longest: list[Sample] = [("", labels, latency.last) for labels, latency in found]
    yield f"{name}_max_seconds", "gauge", "The longest latency of the last batch.", longest


def _step(title: str) -> Labels:
    route, _, step = title.rpartition(".")
    return {"route": route, "step": step}


def labelled(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Export:
    """Where the numbers go after every batch: files, by their ending, and a port of this machine.

    with Export(["numbers.prom"], port=9464) as export:
        run_stream(app, on_batch=export.update)
    """

    def __init__(self, paths: Iterable[str] = (), port: int | None = None) -> None:
        self.paths = list(paths)
        for path in self.paths:
            if not path.endswith((JSON, PROMETHEUS)):
                raise BadFile(f"cannot tell the format of {path}", None, f"end it in {JSON} or {PROMETHEUS}")
        self.text = ""
        self.server = None if port is None else _server(port, self)

    @property
    def address(self) -> str | None:
        """Where Prometheus finds the page."""
        return f"http://{_HOST}:{self.server.server_port}/metrics" if self.server else None

    def __enter__(self) -> Export:
        if self.server is not None:
            threading.Thread(target=self.server.serve_forever, name="penstock-metrics", daemon=True).start()
        return self

    def __exit__(self, *failed: object) -> None:
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()

    def update(self, summary: Summary) -> None:
        """The numbers so far; a summary without batches is a run that has begun."""
        self.text = exposition(summary, time.time() if summary.batches else None)
        for path in self.paths:
            is_json = path.endswith(JSON)
            _replace(path, json.dumps(summary.as_dict(), indent=2) + "\n" if is_json else self.text)


def _replace(path: str, text: str) -> None:
    """Whoever reads the file sees all of the old text or all of the new."""
    try:
        write_whole(path, text.encode(), lasting=False)
    except OSError as error:
        raise BadFile(f"cannot write {path}: {error.strerror}") from None


def _server(port: int, export: Export) -> ThreadingHTTPServer:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.partition("?")[0] != "/metrics":
                self.send_error(404, "the numbers are at /metrics")
                return
            content = export.text.encode()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    try:
        return ThreadingHTTPServer((_HOST, port), Page)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadEndpoint(f"cannot serve the numbers at port {port}: {reason}", fix="choose another port") from None
