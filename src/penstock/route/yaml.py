"""The same app as YAML, both ways.

    app: orders
    routes:
      - route: intake
        from: {files: orders.jsonl, format: json, schema: "id BIGINT, total DOUBLE"}
        steps:
          - filter: total > 0
          - choice: {cases: {cheap: total < 100}, otherwise: rest}
    sinks:
      cheap: {files: out/cheap}
      rest: void
    dead_letters: {files: dead}

`from` is a source, the name of a channel, or `{join: [a, b]}`. Conditions and mappings are the SQL-like text of
`penstock.expr.text`; Python functions are named `module:function`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import yaml

from penstock.endpoints.base import Sink, Source
from penstock.endpoints.files import Files
from penstock.endpoints.yaml import read_endpoint, write_endpoint
from penstock.errors import BadEndpoint, Origin, PenstockError
from penstock.patterns.join import Join, join
from penstock.patterns.redelivery import SETTINGS
from penstock.patterns.settings import read_settings
from penstock.patterns.to import To
from penstock.route.app import App
from penstock.route.route import Route
from penstock.route.yamlsteps import Readers, read_step, write_step
from penstock.yaml.item import Item, read


def from_yaml(text: str, file: str = "", route: type[Route] = Route) -> App:
    """The app that a YAML text describes; `file` is what errors call the text. Its routes are of the class `route`."""
    whole = read(text, file or "<yaml>", "the file")
    found = whole.keys(("app", "routes"), ("sinks", "dead_letters", "error_budget"))
    routes = [_route(item, route) for item in found["routes"].listed()]
    bound = found["sinks"].entries() if "sinks" in found else {}
    sinks = {channel: _sink(item) for channel, item in bound.items()}
    dead = _sink(found["dead_letters"]) if "dead_letters" in found else None
    budget = found["error_budget"].value() if "error_budget" in found else None
    with found["error_budget" if budget is not None else "routes"].located():
        app = App(found["app"].text(), *routes, sinks=sinks, dead_letters=dead, error_budget=budget)  # type: ignore[arg-type]
    object.__setattr__(app, "origin", found["app"].origin)
    object.__setattr__(app, "sink_origins", {channel: item.origin for channel, item in bound.items()})
    return app


def _route(item: Item, kind: type[Route]) -> Route:
    found = item.keys(("route", "from"), ("delivery", "on_error", "steps"))
    name = found["route"].text()
    start = item.below(found["from"].node, f"the source of route {name!r}")
    with item.located():
        delivery = found["delivery"].text() if "delivery" in found else None
        route = kind(name, _from(start), origin=item.origin, delivery=delivery)
    steps = found["steps"].listed() if "steps" in found else []
    readers = {word: read for node in kind.patterns() for word, read in node.readers().items()}
    for number, step in enumerate(steps, 1):
        route = _with_step(route, item.below(step.node, f"step {number} of route {name!r}"), readers)
    if "on_error" in found:
        with found["on_error"].located():
            return route.on_error(**read_settings(found["on_error"].keys((), SETTINGS)))
    return route


def _with_step(route: Route, item: Item, readers: Readers) -> Route:
    word, settings, name = read_step(item, readers)
    settings = item.below(settings.node, f"{word!r} of route {route.name!r}")
    with settings.located():
        return route.then(lambda: replace(readers[word](settings), origin=settings.origin), name)


def _from(item: Item) -> Source | Join | str:
    if not item.is_mapping:
        return item.text()
    if "join" in item.entries():
        with item.located():
            return join(*item.keys(("join",))["join"].texts())
    source = read_endpoint(item)
    if not isinstance(source, Source):
        raise BadEndpoint(f"{item.what} is {source}, which cannot be read", item.origin)
    return source


def _sink(item: Item) -> Sink:
    sink = read_endpoint(item)
    if not isinstance(sink, Sink):
        raise BadEndpoint(f"{item.what} is {sink}, which cannot be written to", item.origin)
    return sink


def to_yaml(app: App) -> str:
    """The app as YAML; what exists only in memory (messages, DataFrames, lambdas) cannot be written."""
    document: dict[str, object] = {"app": app.name, "routes": [_written_route(route) for route in app.routes]}
    steps = [step for route in app.routes for step in route.steps]
    own = {step.channel for step in steps if isinstance(step, To) and step.sink is not None}
    sinks = {channel: _written_end(sink, f"the sink of channel {channel!r}")
             for channel, sink in app.sinks.items() if channel not in own}  # fmt: skip
    if sinks:
        document["sinks"] = sinks
    if app.dead_letters != Files(f"dead-letters/{app.name}"):
        document["dead_letters"] = _written_end(app.dead_letters, "the sink of dead letters")
    if app.error_budget is not None:
        document["error_budget"] = app.error_budget
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def _written_route(route: Route) -> dict[str, object]:
    steps = []
    for number, step in enumerate(route.steps, 1):
        with _writing(f"step {number} of route {route.name!r}", step.origin):
            steps.append({key: _flow(value) for key, value in write_step(step).items()})
    written: dict[str, object] = {"route": route.name, "from": _written_from(route)}
    if route.delivery:
        written["delivery"] = route.delivery
    if route.redelivery is not None:
        written["on_error"] = _flow(route.redelivery.write())
    return {**written, "steps": steps} if steps else written


def _written_from(route: Route) -> object:
    match route.source:
        case Join(sources):
            return _flow({"join": list(sources)})
        case str():
            return route.source
    with _writing(f"the source of route {route.name!r}", route.origin):
        end = write_endpoint(route.source)
    # A word alone would be a channel.
    return _flow({end: True} if isinstance(end, str) else end)


def _written_end(sink: Sink, what: str) -> object:
    with _writing(what):
        return _flow(write_endpoint(sink))


@contextmanager
def _writing(what: str, origin: Origin | str | None = None) -> Iterator[None]:
    """Errors say what could not be written, and where it stands."""
    try:
        yield
    except PenstockError as error:
        raise type(error)(f"{what}: {error.what}", error.origin or origin, error.fix) from None


class _Line(dict[str, object]):
    """A mapping written on one line."""


def _flow(value: object) -> object:
    short = isinstance(value, dict) and sum(map(len, map(str, (*value, *value.values())))) < 80
    return _Line(value) if isinstance(value, dict) and short else value


class _Dumper(yaml.SafeDumper):
    """One line for what is short; no anchors, which people do not expect in a file of routes."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _one_line(dumper: yaml.SafeDumper, value: _Line) -> yaml.Node:
    return dumper.represent_mapping("tag:yaml.org,2002:map", value, flow_style=True)


def _list(dumper: yaml.SafeDumper, value: list[object]) -> yaml.Node:
    short = not any(isinstance(item, (dict, list)) for item in value)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=short)


_Dumper.add_representer(_Line, _one_line)
_Dumper.add_representer(list, _list)
