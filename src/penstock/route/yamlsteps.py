"""The steps of a route in YAML, both ways: `- filter: total > 0`. Each pattern reads and writes its own settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.errors import BadFile, BadRoute, did_you_mean
from penstock.patterns.node import Node
from penstock.yaml.item import Item

Readers = Mapping[str, Callable[[Item], Node]]


def read_step(item: Item, readers: Readers) -> tuple[str, Item, str | None]:
    """The word for a step, its settings, and its name."""
    entries = item.entries()
    name = entries.pop("name").text() if "name" in entries else None
    known = [word for word in entries if word in readers]
    for word, inner in entries.items():
        if word not in readers:
            if known:
                raise BadFile(f"{item.what} has no key {word!r}", inner.origin,
                              f"settings of {known[0]!r} stand inside it, only 'name' stands beside it")  # fmt: skip
            raise BadRoute(f"{item.what}: there is no pattern {word!r}", inner.origin, did_you_mean(word, readers))
    if len(known) != 1:
        said = f"has two patterns: {', '.join(known)}" if known else "names no pattern"
        raise BadFile(f"{item.what} {said}", item.origin, "one pattern per step: begin each with a dash")
    return known[0], entries[known[0]], name


def write_step(node: Node) -> dict[str, object]:
    return {node.word: node.write(), **({"name": node.name} if node.name else {})}
