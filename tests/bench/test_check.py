from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.bench.answers import WORKLOADS, Channels, expected
from penstock.bench.check import check
from penstock.bench.models import model_files

SCALE = 0.01
COUNT = 2_000
MODELS = {
    "RT-2-D": "multi", "RT-2-D-filter": "multi", "RT-5-A": "collections-16", "AGG-A": "fields", "AGG-B": "entries",
    "MDS-3-B": "duplicates-100", "MDS-2-10": "sequences-10", "MDS-2-100": "sequences-100",
    "MDS-2-1000": "sequences-1000", "MDS-2-10000": "sequences-1000", "MDS-2-100000": "sequences-1000",
}  # fmt: skip
Checked = Callable[..., list[str]]


def model_of(workload: str) -> str:
    return "cars" if workload.startswith("cars-") else MODELS.get(workload, "orders")


def lines(messages: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(message) + "\n" for message in messages)


@pytest.fixture
def checked(tables: Path, tmp_path: Path) -> Checked:
    """The differences after `change` was made to the right answer."""

    def run(workload: str, change: Callable[[Channels], Any] = lambda channels: None) -> list[str]:
        inputs = model_files(tables, model_of(workload), SCALE, COUNT).paths
        known = {name: model_files(tables, name, SCALE).paths for name in ("customers", "owners")}
        channels = expected(workload, read(inputs), {name: read(paths) for name, paths in known.items()})
        change(channels)
        for channel, messages in channels.items():
            (tmp_path / f"{channel}.jsonl").write_text(lines(messages))
        return check(workload, inputs, tmp_path, known)

    return run


def read(paths: tuple[Path, ...]) -> list[dict[str, Any]]:
    return [json.loads(line) for path in paths for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_right_answer_has_no_differences_and_one_message_less_has(checked: Checked, workload: str) -> None:
    assert checked(workload) == []

    def drop(channels: Channels) -> None:
        next(iter(channels.values()))[:] = next(iter(channels.values()))[1:]

    (found,) = checked(workload, drop)[:1]
    assert found.startswith(f"{workload}, ")
    assert ": 1 message missing, for example {" in found


def test_missing_messages_are_counted_and_one_is_shown(checked: Checked) -> None:
    def drop(channels: Channels) -> None:
        del channels["cheap"][:3]

    (found,) = checked("RT-1-A", drop)
    assert found.startswith('RT-1-A, channel cheap: 3 messages missing, for example {"msgId":')


def test_a_changed_value_is_one_missing_and_one_too_many(checked: Checked) -> None:
    def change(channels: Channels) -> None:
        channels["out"][5] |= {"price": channels["out"][5]["price"] + 0.01}

    found = checked("MT-1-A", change)
    assert [text.split(", for example")[0] for text in found] == [
        "MT-1-A, channel out: 1 message missing", "MT-1-A, channel out: 1 message too many",
    ]  # fmt: skip


def test_a_change_deep_inside_is_found(checked: Checked) -> None:
    def swap(channels: Channels) -> None:
        first = channels["out"][0]["orders"]
        first[0], first[1] = first[1], first[0]

    assert len(checked("RT-6-A", swap)) == 2


def test_a_wrong_channel_is_found(checked: Checked) -> None:
    def move(channels: Channels) -> None:
        channels["rest"].append(channels["cheap"].pop())

    found = checked("RT-1-A", move)
    assert [text.split(", for example")[0] for text in found] == [
        "RT-1-A, channel cheap: 1 message missing", "RT-1-A, channel rest: 1 message too many",
    ]  # fmt: skip


def test_a_channel_that_nobody_asked_for_is_found_unless_it_is_empty(checked: Checked) -> None:
    assert checked("BL", lambda channels: channels.update(dead=[])) == []
    (found,) = checked("BL", lambda channels: channels.update(dead=[{"msgId": 1}]))
    assert found == 'BL, channel dead: 1 message too many, for example {"msgId":1}'


def test_a_message_that_comes_twice_is_found(checked: Checked) -> None:
    (found,) = checked("MDS-3-B", lambda channels: channels["out"].append(channels["out"][0]))
    assert "1 message too many" in found


def test_the_order_of_messages_and_fields_does_not_matter_and_one_is_one_point_zero(checked: Checked) -> None:
    def change(channels: Channels) -> None:
        channels["out"] = [
            {name: float(value) if type(value) is int else value for name, value in reversed(message.items())}
            for message in reversed(channels["out"])
        ]

    assert checked("BL", change) == []


@pytest.mark.parametrize("value", [1, "true", None, False])
def test_true_is_no_number_and_no_text(checked: Checked, value: object) -> None:
    def change(channels: Channels) -> None:
        channels["out"][0]["delivered"] = value

    assert len(checked("MDS-1-A", change)) == 2


def test_text_is_no_number(checked: Checked) -> None:
    def change(channels: Channels) -> None:
        channels["out"][0] |= {"OORDERKEY": "1"}

    assert len(checked("BL", change)) == 2


def test_a_sequence_must_be_in_order_but_groups_may_mix(checked: Checked) -> None:
    def mix(channels: Channels) -> None:
        channels["out"].sort(key=lambda message: (message["position"], -message["group"]))

    def swap(channels: Channels) -> None:
        out = channels["out"]
        out[13], out[14] = out[14], out[13]

    assert checked("MDS-2-10", mix) == []
    assert checked("MDS-2-10", swap) == [
        "MDS-2-10, channel out: 1 message out of sequence, for example position 4 of group 1 comes after 5"
    ]


def test_a_sequence_goes_on_in_the_next_file(tables: Path, tmp_path: Path) -> None:
    inputs = model_files(tables, "sequences-100", SCALE, COUNT).paths
    right = expected("MDS-2-100", read(inputs))["out"]
    (tmp_path / "out").mkdir()
    for number in range(21):
        part = right[max(0, number * 100 - 50) : number * 100 + 50]
        (tmp_path / "out" / f"part-{number}.jsonl").write_text(lines(part))
    assert check("MDS-2-100", inputs, tmp_path) == []
    (tmp_path / "out" / "part-9.jsonl").rename(tmp_path / "out" / "part-90.jsonl")
    (found,) = check("MDS-2-100", inputs, tmp_path)
    assert found.endswith("channel out: 1 message out of sequence, for example position 1 of group 9 comes after 100")


def test_a_load_balancer_may_choose_but_not_prefer(checked: Checked) -> None:
    def move(count: int) -> Callable[[Channels], None]:
        def change(channels: Channels) -> None:
            channels["route-1"] += channels["route-2"][:count]
            del channels["route-2"][:count]

        return change

    assert checked("LB-2", move(25)) == []
    assert checked("LB-2", move(30)) == ["LB-2, the channels differ by more than 5%: route-1 1,030, route-2 970"]


def test_a_load_balancer_loses_nothing_and_has_no_other_routes(checked: Checked) -> None:
    (found,) = checked("LB-4", lambda channels: channels["route-3"].pop())
    assert found.startswith("LB-4, channel all routes together: 1 message missing")
    found, lost = checked("LB-4", lambda channels: channels.update({"route-5": [channels["route-1"].pop()]}))
    assert found == "LB-4, channel route-5: is not one of route-1, route-2, route-3, route-4"
    assert "1 message missing" in lost


def test_without_outputs_everything_is_missing(tables: Path, tmp_path: Path) -> None:
    inputs = model_files(tables, "orders", SCALE, COUNT).paths
    (found,) = check("BL", inputs, tmp_path / "nothing")
    assert found.startswith("BL, channel out: 2,000 messages missing")


def test_a_line_that_is_no_json_object_is_named(tables: Path, tmp_path: Path) -> None:
    inputs = model_files(tables, "orders", SCALE, COUNT).paths
    for text in ("7", "{torn"):
        (tmp_path / "out.jsonl").write_text('{"msgId":0}\n' + text + "\n")
        (found,) = check("BL", inputs, tmp_path)
        assert found.startswith(f"BL: line 2 of {tmp_path}/out.jsonl is not a JSON object: ")
