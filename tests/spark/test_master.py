from __future__ import annotations

import pytest

from penstock.errors import BadMachine
from penstock.spark.master import check, is_loopback


@pytest.mark.parametrize("master", ["local", "local[4]", "yarn", "k8s://https://host:6443"])
def test_other_masters_are_left_to_spark(master: str) -> None:
    check(master)
    assert not is_loopback(master)


@pytest.mark.parametrize("master", ["spork://host:7077", "host:7077", "spark://host", "spark://", "spark://a:1,b", ""])
def test_an_address_that_is_none_is_refused(master: str) -> None:
    with pytest.raises(BadMachine) as caught:
        check(master)
    assert str(caught.value) == (
        f"BadMachine: {master!r} is not the address of a Spark master\n"
        "  fix  write local[*], spark://host:7077, yarn or k8s://https://host:port"
    )


def test_a_master_that_does_not_answer_is_refused_at_once() -> None:
    with pytest.raises(BadMachine) as caught:
        check("spark://127.0.0.1:1,localhost:2")
    assert str(caught.value) == (
        "BadMachine: no Spark master answers at spark://127.0.0.1:1,localhost:2: Connection refused\n"
        "  fix  check the address, or start one here: penstock cluster start"
    )


@pytest.mark.parametrize(
    ("master", "loopback"),
    [("spark://127.0.0.1:7077", True), ("spark://localhost:1,[::1]:2", True), ("spark://127.0.0.1:1,other:2", False)],
)
def test_a_master_on_loopback_is_known(master: str, loopback: bool) -> None:
    assert is_loopback(master) == loopback
