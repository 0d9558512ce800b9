"""The app of the crash test of topics: orders from one topic into two, of a log or of Kafka.

    python -m tests.soak.topics log DIRECTORY | kafka DIRECTORY SERVERS PREFIX
"""

from __future__ import annotations

import sys
from pathlib import Path

from penstock import App, Files, Json, KafkaTopic, Log, Route, body
from penstock.spark.stream import run_stream

ORDER = Json("id BIGINT, kind STRING")
ROWS_PER_BATCH = 100
EVEN, ODD = "even", "odd"


def order(number: int) -> bytes:
    return b'{"id": %d, "kind": "%s"}' % (number, (ODD if number % 2 else EVEN).encode())


def app(directory: Path, source: Log | KafkaTopic, even: Log | KafkaTopic, odd: Log | KafkaTopic) -> App:
    route = Route("in", source, delivery="exactly once").choice({EVEN: body.kind == EVEN}, otherwise=ODD)
    return App("topics", route, sinks={EVEN: even, ODD: odd}, dead_letters=Files(str(directory / "dead")))


def log_app(directory: Path) -> App:
    out = str(directory / "out")
    source = Log("orders", ORDER, at=str(directory / "in"))
    return app(directory, source, Log(EVEN, at=out, key="id", partitions=2), Log(ODD, at=out))


def kafka_app(directory: Path, servers: str, prefix: str) -> App:
    def topic(name: str, *form: Json, key: str | None = None) -> KafkaTopic:
        return KafkaTopic(prefix + name, *form, servers=servers, key=key)

    return app(directory, topic("orders", ORDER), topic(EVEN, key="id"), topic(ODD))


def main() -> None:
    kind, directory, *rest = sys.argv[1:]
    made = log_app(Path(directory)) if kind == "log" else kafka_app(Path(directory), *rest)
    print("started", flush=True)
    run_stream(made, f"{directory}/checkpoint", rows_per_batch=ROWS_PER_BATCH)


if __name__ == "__main__":
    main()
