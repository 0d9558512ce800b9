"""Are the outputs of a system those that a workload of EIPBench asks for?

Messages are compared as JSON values: the order of fields does not matter, and 1 is 1.0.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from penstock.bench.answers import Channels, Message, expected

BALANCE = 0.05
"""How much the channels of a load balancer may differ, as a part of the largest; one message is always allowed."""
_SHOWN = 300


def check(
    workload: str, inputs: Sequence[Path], outputs: Path, tables: Mapping[str, Sequence[Path]] | None = None
) -> list[str]:
    """The differences between `<outputs>/<channel>.jsonl`, or the files in `<outputs>/<channel>/`, and the answer."""
    known = {name: _all_messages(paths) for name, paths in (tables or {}).items()}
    answer = expected(workload, _all_messages(inputs), known)
    try:
        found = read_channels(outputs)
    except msgspec.DecodeError as error:
        return [f"{workload}: {error}"]
    return [f"{workload}, {text}" for text in differences(workload, answer, found)]


def differences(workload: str, answer: Channels, found: Channels) -> Iterator[str]:
    """What is wrong in `found`, a line each."""
    if workload.startswith("LB-"):
        yield from _unbalanced(answer, found)
        answer, found = _together(answer), _together({name: found[name] for name in found if name in answer})
    for channel in sorted(answer.keys() | found.keys()):
        wrong = list(_compared(channel, answer.get(channel, []), found.get(channel, [])))
        if workload.startswith("MDS-2-") and not wrong:
            wrong = list(_out_of_sequence(channel, found.get(channel, [])))
        yield from wrong


def read_channels(outputs: Path) -> Channels:
    """The messages of every channel in the order of the files."""
    channels: Channels = defaultdict(list)
    for path in sorted((*outputs.glob("*.jsonl"), *outputs.glob("*/*.jsonl")), key=_natural):
        channel = path.stem if path.parent == outputs else path.parent.name
        channels[channel] += read_messages(path)
    return dict(channels)


def _natural(path: Path) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", str(path))]


def _all_messages(paths: Sequence[Path]) -> list[Message]:
    return [message for path in paths for message in read_messages(path)]


def read_messages(path: Path) -> Iterator[Message]:
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield msgspec.json.decode(line, type=dict[str, Any])
            except msgspec.DecodeError as error:
                raise msgspec.DecodeError(f"line {number} of {path} is not a JSON object: {error}") from None


def _frozen(value: Any) -> Hashable:
    if isinstance(value, dict):
        return frozenset((name, _frozen(one)) for name, one in value.items())
    if isinstance(value, list):
        return tuple(_frozen(one) for one in value)
    return (bool, value) if isinstance(value, bool) else value  # True is 1 in Python, but not in JSON


def _compared(channel: str, answer: list[Message], found: list[Message]) -> Iterator[str]:
    right, given = Counter(map(_sorted_text, answer)), Counter(map(_sorted_text, found))
    left, over = _values(right - given), _values(given - right)  # nearly all are the same text: that is quick
    for surplus, messages, word in ((left - over, answer, "missing"), (over - left, found, "too many")):
        if surplus:
            example = next(message for message in messages if _frozen(message) in surplus)
            yield f"channel {channel}: {_count(surplus.total())} {word}, for example {_text(example)}"


def _sorted_text(message: Message) -> bytes:
    return msgspec.json.encode(message, order="sorted")


def _values(texts: Counter[bytes]) -> Counter[Hashable]:
    return Counter(_frozen(msgspec.json.decode(text)) for text in texts.elements())


def _count(number: int) -> str:
    return "1 message" if number == 1 else f"{number:,} messages"


def _text(message: Message) -> str:
    text = msgspec.json.encode(message).decode()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _together(channels: Channels) -> Channels:
    return {"all routes together": [message for messages in channels.values() for message in messages]}


def _unbalanced(answer: Channels, found: Channels) -> Iterator[str]:
    for channel in sorted(found.keys() - answer.keys()):
        yield f"channel {channel}: is not one of {', '.join(answer)}"
    counts = {channel: len(found.get(channel, [])) for channel in answer}
    most, least = max(counts.values()), min(counts.values())
    if most - least > max(1, BALANCE * most):
        shown = ", ".join(f"{channel} {count:,}" for channel, count in counts.items())
        yield f"the channels differ by more than {BALANCE:.0%}: {shown}"


def _out_of_sequence(channel: str, found: Iterable[Message]) -> Iterator[str]:
    last: dict[int, int] = {}
    wrong = []
    for message in found:
        group, position = message["group"], message["position"]
        if position < last.get(group, 0):
            wrong.append(f"position {position:,} of group {group:,} comes after {last[group]:,}")
        last[group] = position
    if wrong:
        yield f"channel {channel}: {_count(len(wrong))} out of sequence, for example {wrong[0]}"
