"""The steps of a route in YAML, both ways: `- filter: total > 0`."""

from __future__ import annotations

import os
from collections.abc import Callable

from penstock.budget import Budget, check_budget
from penstock.endpoints.base import Sink
from penstock.endpoints.lookup import LookupTable, lookup_table
from penstock.errors import BadEndpoint, BadFile, BadRoute, did_you_mean
from penstock.patterns.balance import RANDOM, WEIGHTED, Balance, balance
from penstock.patterns.choice import Choice, choice
from penstock.patterns.content_filter import ContentFilter, content_filter
from penstock.patterns.enrich import NULL_POLICY, Enrich, EnrichFromTable, enrich, enrich_from
from penstock.patterns.filter import Filter, filter_messages
from penstock.patterns.multicast import Multicast, multicast
from penstock.patterns.node import FALSE, Node
from penstock.patterns.recipients import Recipients, recipients
from penstock.patterns.script import Script, script
from penstock.patterns.split import Split, SplitFields, split, split_fields
from penstock.patterns.tap import Tap, tap
from penstock.patterns.to import To, to
from penstock.patterns.translate import Mappings, Translate, translate
from penstock.route.yamlends import imported, read_endpoint, reference, write_endpoint
from penstock.route.yamlexpressions import read_expression, write_expression
from penstock.route.yamlnodes import Item
from penstock.route.yamlstate import read_aggregate, read_idempotent, read_resequence, write_state


def read_step(item: Item) -> tuple[str, Item, str | None]:
    """The verb of a step, its settings, and its name."""
    entries = item.entries()
    name = entries.pop("name").text() if "name" in entries else None
    known = [verb for verb in entries if verb in VERBS]
    for verb, inner in entries.items():
        if verb not in VERBS:
            if known:
                raise BadFile(f"{item.what} has no key {verb!r}", inner.origin,
                              f"settings of {known[0]!r} stand inside it, only 'name' stands beside it")  # fmt: skip
            raise BadRoute(f"{item.what}: there is no pattern {verb!r}", inner.origin, did_you_mean(verb, VERBS))
    if len(known) != 1:
        said = f"has two patterns: {', '.join(known)}" if known else "names no pattern"
        raise BadFile(f"{item.what} {said}", item.origin, "one pattern per step: begin each with a dash")
    return known[0], entries[known[0]], name


def _filter(item: Item) -> Node:
    if not item.is_mapping or "where" not in item.entries():
        return filter_messages(read_expression(item))
    found = item.keys(("where",), ("discard", "missing"))
    return filter_messages(read_expression(found["where"]), _text(found, "discard"), _text(found, "missing") or FALSE)


def _choice(item: Item) -> Node:
    found = item.keys(("cases", "otherwise"), ("missing",))
    cases = found["cases"]
    parts = [entry.entries() for entry in cases.listed()] if cases.is_list else [cases.entries()]
    listed: list[tuple[str, object]] = [(name, read_expression(test)) for part in parts for name, test in part.items()]
    return choice(listed, found["otherwise"].text(), _text(found, "missing") or FALSE)


def _balance(item: Item) -> Node:
    if item.is_list:
        return balance(*item.texts())
    found = item.keys(("to",), ("weights", "sticky", "random_seed"))
    return balance(
        *found["to"].texts(),
        weights=[weight.integer() for weight in found["weights"].listed()] if "weights" in found else None,
        sticky=read_expression(found["sticky"]) if "sticky" in found else None,
        random_seed=found["random_seed"].integer() if "random_seed" in found else None,
    )


def _recipients(item: Item) -> Node:
    found = item.keys(("of", "known"), ("separator", "stop_on_exception"))
    return recipients(read_expression(found["of"]), found["known"].texts(), _text(found, "separator") or ",",
                      _stops(found))  # fmt: skip


def _multicast(item: Item) -> Node:
    if not item.is_mapping:
        return multicast(*item.texts())
    found = item.keys(("to",), ("stop_on_exception",))
    return multicast(*found["to"].texts(), stop_on_exception=_stops(found))


def _split(item: Item) -> Node:
    if not item.is_mapping or "of" not in item.entries():
        return split(read_expression(item))
    found = item.keys(("of",), ("into", "head", "tail", "error_budget"))
    return split(read_expression(found["of"]), _text(found, "into"), _texts(found, "head"), _texts(found, "tail"),
                 _budget(found))  # fmt: skip


def _split_fields(item: Item) -> Node:
    found = item.keys((), ("head", "tail", "error_budget"))
    return split_fields(_texts(found, "head"), _texts(found, "tail"), _budget(found))


def _mappings(item: Item) -> dict[str, object]:
    return {name: read_expression(value) for name, value in item.entries().items()}


def _enrich_from(item: Item) -> Node:
    found = item.keys(("table", "key", "on"), ("name", "fields", "into", "missing"))
    with found["table"].located():
        table = lookup_table(found["table"].text(), found["key"].text(), _text(found, "name") or "")
    return enrich_from(table, read_expression(found["on"]), _texts(found, "fields") or None,
                       _text(found, "into"), _text(found, "missing") or NULL_POLICY)  # fmt: skip


def _script(item: Item) -> Node:
    found = item.keys(("function", "returns"))
    with found["returns"].located():
        return script(imported(found["function"]), found["returns"].text())


def _to(item: Item) -> Node:
    if not item.is_mapping:
        return to(item.text())
    found = item.keys(("channel", "sink"))
    sink = read_endpoint(found["sink"])
    if not isinstance(sink, Sink):
        raise BadEndpoint(f"{sink} cannot be written to", found["sink"].origin)
    return to(found["channel"].text(), sink)


VERBS: dict[str, Callable[[Item], Node]] = {
    "filter": _filter,
    "choice": _choice,
    "balance": _balance,
    "multicast": _multicast,
    "recipients": _recipients,
    "tap": lambda item: tap(item.text()),
    "split": _split,
    "split_fields": _split_fields,
    "translate": lambda item: translate(_mappings(item)),
    "keep": lambda item: content_filter(keep=item.texts()),
    "drop": lambda item: content_filter(drop=item.texts()),
    "enrich": lambda item: enrich(_mappings(item)),
    "enrich_from": _enrich_from,
    "script": _script,
    "aggregate": read_aggregate,
    "resequence": read_resequence,
    "idempotent": read_idempotent,
    "to": _to,
}


def _text(found: dict[str, Item], key: str) -> str | None:
    return found[key].text() if key in found else None


def _texts(found: dict[str, Item], key: str) -> list[str]:
    return found[key].texts() if key in found else []


def _stops(found: dict[str, Item]) -> bool:
    return "stop_on_exception" in found and found["stop_on_exception"].boolean()


def _budget(found: dict[str, Item]) -> Budget | None:
    if "error_budget" not in found:
        return None
    with found["error_budget"].located():
        return check_budget(found["error_budget"].value())


def write_step(node: Node, what: str) -> dict[str, object]:
    verb, settings = _written(node, what)
    return {verb: settings, **({"name": node.name} if node.name else {})}


def _written(node: Node, what: str) -> tuple[str, object]:
    match node:
        case Filter(predicate, discard, missing):
            extra = _given(discard=discard, missing=missing if missing != FALSE else None)
            where = write_expression(predicate, what)
            return "filter", {"where": where, **extra} if extra else where
        case Choice(cases, otherwise, missing):
            tests = [(channel, write_expression(test, what)) for channel, test in cases]
            repeated = len({channel for channel, _ in tests}) < len(tests)
            listed = [{channel: test} for channel, test in tests] if repeated else dict(tests)
            policy = _given(missing=missing if missing != FALSE else None)
            return "choice", {"cases": listed, "otherwise": otherwise, **policy}
        case Balance(targets, strategy, weights, key, seed):
            how: dict[str, object] = {}
            if strategy == WEIGHTED:
                how = {"weights": list(weights)}
            elif strategy == RANDOM:
                how = {"random_seed": seed}
            elif key is not None:
                how = {"sticky": write_expression(key, what)}
            return "balance", {"to": list(targets), **how} if how else list(targets)
        case Multicast(targets, stops):
            return "multicast", {"to": list(targets), "stop_on_exception": True} if stops else list(targets)
        case Recipients(of, known, separator, stops):
            extra = _given(separator=separator if separator != "," else None, stop_on_exception=stops or None)
            return "recipients", {"of": write_expression(of, what), "known": list(known), **extra}
        case Tap(target):
            return "tap", target
        case To(channel, sink):
            return "to", channel if sink is None else {"channel": channel, "sink": write_endpoint(sink, what)}
    return _written_content(node, what)


def _written_content(node: Node, what: str) -> tuple[str, object]:
    match node:
        case Split(collection, into, head, tail, budget):
            of = write_expression(collection, what)
            extra = _given(into=into, head=list(head) or None, tail=list(tail) or None, error_budget=budget)
            return "split", {"of": of, **extra} if extra else of
        case SplitFields(head, tail, budget):
            return "split_fields", _given(head=list(head) or None, tail=list(tail) or None, error_budget=budget)
        case Translate(mappings):
            return "translate", _write_mappings(mappings, what)
        case Enrich(mappings):
            return "enrich", _write_mappings(mappings, what)
        case ContentFilter(paths, drops):
            return "drop" if drops else "keep", [".".join(map(str, path)) for path in paths]
        case EnrichFromTable(table, on, fields, into, missing):
            extra = _given(into=into, missing=missing if missing != NULL_POLICY else None)
            return "enrich_from", {**_write_table(table, what), "on": write_expression(on, what),
                                   "fields": list(fields), **extra}  # fmt: skip
        case Script(function, returns):
            return "script", {"function": reference(function, what), "returns": returns.ddl()}
    if node.stateful:
        return node.verb, write_state(node, what)
    raise BadFile(f"{what}: a {node.pattern} cannot be written as YAML", node.origin)


def _given(**settings: object) -> dict[str, object]:
    return {name: value for name, value in settings.items() if value is not None}


def _write_mappings(mappings: Mappings, what: str) -> dict[str, object]:
    return {".".join(target): write_expression(value, what) for target, value in mappings}


def _write_table(table: LookupTable, what: str) -> dict[str, object]:
    path = getattr(table, "path", None) or (table.name if os.path.isfile(table.name) else None)
    if path is None:
        raise BadEndpoint(f"{what}: the table {table} was not read from a file and cannot be written as YAML", None,
                          "save it as .csv, .parquet or .jsonl and read it with lookup_table(path, key)")  # fmt: skip
    renamed = _given(name=table.name if table.name != os.path.basename(path) else None)
    return {"table": path, "key": table.key, **renamed}
