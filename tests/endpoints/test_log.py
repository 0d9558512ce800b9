"""The endpoint of the message log: what it refuses, and how it is written down."""

from __future__ import annotations

import pytest

from penstock import App, Json, Log, Route
from penstock.errors import BadEndpoint, PenstockError
from penstock.route.yaml import from_yaml, to_yaml

SOURCE = Log("orders", Json("id BIGINT"), at="logs.example.org:19997", token="${LOG_TOKEN}", tls=True)


def test_a_log_is_written_as_yaml_and_read_again() -> None:
    sink = Log("paid", at="data", key="id", partitions=4, headers=True, authority="server.pem")
    app = App("shop", Route("in", SOURCE).to("paid", sink), dead_letters=Log("dead", at="data"))
    text = to_yaml(app)
    assert "log: orders" in text
    again = from_yaml(text)
    assert again.explain() == app.explain()
    assert again.routes[0].source == SOURCE
    assert again.plan.outlets[0].sink == sink


def test_a_token_is_not_written_down_or_shown() -> None:
    secret = Log("orders", at="logs.example.org:19997", token="secret")
    assert "secret" not in repr(secret)
    with pytest.raises(BadEndpoint, match="a token is not written to a file"):
        to_yaml(App("shop", Route("in", secret).to("out", Log("paid"))))


def test_an_address_is_no_directory() -> None:
    assert SOURCE.is_served
    assert Log("orders").is_served
    assert not Log("orders", at="data").is_served
    assert not Log("orders", at="/data/a:1").is_served


@pytest.mark.parametrize("wrong", [{"topic": "../x"}, {"topic": "a", "at": ""}, {"topic": "a", "partitions": 0}])
def test_what_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(PenstockError):
        Log(**wrong)  # type: ignore[arg-type]


def test_explain_says_what_is_promised() -> None:
    app = App("shop", Route("in", SOURCE, delivery="exactly once in order").to("paid", Log("paid", at="data")))
    promised = "exactly once in order: messages are numbered by batch, and a number is stored once"
    assert f"paid := log paid at data  bodies as they came  | {promised}" in app.explain()
