"""The endpoint of a Kafka topic: what it refuses, and how it is written down. No Kafka here."""

from __future__ import annotations

import pytest

from penstock import App, Console, Json, KafkaTopic, Route
from penstock.errors import BadEndpoint, PenstockError
from penstock.route.yaml import from_yaml, to_yaml

SOURCE = KafkaTopic("orders", Json("id BIGINT"), servers="a.example.org:9092,b.example.org:9092", start={1: 5, 0: 7},
                    options={"security.protocol": "SASL_SSL", "sasl.password": "${KAFKA_PASSWORD}"})  # fmt: skip


def test_a_topic_is_written_as_yaml_and_read_again() -> None:
    sink = KafkaTopic("paid", key="id", partitions=4, headers=True, options={"linger.ms": "5"})
    app = App("shop", Route("in", SOURCE).to("paid", sink), dead_letters=KafkaTopic("dead", start="latest"))
    text = to_yaml(app)
    assert "kafka: orders" in text
    again = from_yaml(text)
    assert again.explain() == app.explain()
    assert again.routes[0].source == SOURCE
    assert again.plan.outlets[0].sink == sink


def test_yaml_takes_offsets_and_words_for_true() -> None:
    text = """
app: shop
dead_letters: void
routes:
  - route: in
    from: {kafka: orders, start: {0: 10, 1: 0}, end: latest, options: {enable.ssl.certificate.verification: false}}
    steps:
      - to: {channel: out, sink: console}
"""
    assert from_yaml(text).routes[0].source == KafkaTopic(
        "orders", start={0: 10, 1: 0}, options={"enable.ssl.certificate.verification": "false"}
    )


def test_a_password_is_not_written_down_or_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = KafkaTopic("orders", options={"sasl.password": "hunter2"})
    app = App("shop", Route("in", secret).to("out", Console()))
    assert "hunter2" not in repr(secret) + str(secret) + app.explain()
    with pytest.raises(BadEndpoint, match="a password is not written to a file"):
        to_yaml(app)
    with pytest.raises(BadEndpoint, match=r"name \$\{KAFKA_PASSWORD\}, which is not set"):
        SOURCE.full_options()
    monkeypatch.setenv("KAFKA_PASSWORD", "hunter2")
    assert dict(SOURCE.full_options())["sasl.password"] == "hunter2"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"topic": "a b"}, "'a b' is not the name of a Kafka topic"),
        ({"servers": ""}, "topic 'orders' is nowhere"),
        ({"partitions": 0}, "partitions=0: at least 1 is needed"),
        ({"start": "beginning"}, "start='beginning' is not a place in a topic"),
        ({"end": {0: -1}}, "end={0: -1} are not offsets by partition"),
        ({"options": {"kafka.security.protocol": "SSL"}}, "names are those of librdkafka"),
        ({"options": {"group.id": "mine"}}, "option 'group.id' is set by Penstock itself"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(PenstockError, match=said):
        KafkaTopic(**({"topic": "orders"} | wrong))  # type: ignore[arg-type]


def test_explain_says_what_is_promised() -> None:
    app = App("shop", Route("in", SOURCE, delivery="exactly once in order").to("paid", KafkaTopic("paid")))
    promised = "exactly once in order: messages and the number of the batch are one transaction"
    assert f"paid := kafka paid at 127.0.0.1:9092  bodies as they came  | {promised}" in app.explain()
