"""Schemas and route files: read or refused by name, and the same after they are written."""

from __future__ import annotations

import json
import os
import tempfile

from penstock.errors import PenstockError
from penstock.expr import special
from penstock.route.app import App
from penstock.route.yaml import from_yaml, to_yaml
from penstock.schema import schema
from penstock.schemas import from_json_schema
from penstock.yaml import reading
from tests.fuzz.imports import FewModules
from tests.fuzz.parser import Parser, text_of
from tests.plan import apps

special.importlib = reading.importlib = FewModules  # type: ignore[attr-defined]
os.chdir(tempfile.mkdtemp(prefix="penstock-fuzz-"))  # tables that routes name are files, and none is there


def declared_schemas(data: bytes) -> None:
    text = text_of(data)
    try:
        found = None if text is None else schema(text)
    except PenstockError:
        return
    if found is not None:
        assert schema(found.ddl()) == found


def json_schemas(data: bytes) -> None:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return
    try:
        found = from_json_schema(document) if isinstance(document, dict) else None
    except PenstockError:
        return
    if found is not None:
        assert schema(found.ddl()) == found


def route_files(data: bytes) -> None:
    text = text_of(data)
    try:
        app = None if text is None else from_yaml(text, "routes.yaml")
    except PenstockError:
        return
    if app is None:
        return
    try:
        written = to_yaml(app)
    except PenstockError:
        return
    assert _model(from_yaml(written)) == _model(app), written


def planned_files(data: bytes) -> None:
    text = text_of(data)
    try:
        _ = None if text is None else from_yaml(text, "routes.yaml").plan
    except PenstockError:
        return


def _model(app: App) -> tuple[object, ...]:
    return app.name, app.routes, dict(app.sinks), app.dead_letters, app.error_budget


_SMALL = """\
app: orders
routes:
  - route: intake
    from: {files: orders.jsonl, format: json, schema: "id BIGINT, total DOUBLE, tags ARRAY<STRING>"}
    steps:
      - filter: total > 0
      - choice: {cases: {cheap: total < 100}, otherwise: rest}
sinks: {cheap: {files: out/cheap}, rest: void}
dead_letters: {files: dead}
"""
_ENDS = """\
app: a
error_budget: 5
routes:
  - {route: r, from: {kafka: t, start: {0: 5}, options: {acks: all}}, delivery: exactly once, steps: [{to: s}]}
  - {route: j, from: {join: [x, y]}, on_error: {tries: 3, delay: 5 s}, steps: [{enrich: {n: 1 + 2}, name: one}]}
sinks: {s: {log: t, at: "h:1", token: "${T}"}, q: {postgres: "postgresql://h/d", table: t, key: [id]}, c: console}
"""
_APPS = [to_yaml(make()) for make in (apps.every_step, apps.every_end, apps.every_memory)]
_FILES = [text.encode() for text in (_SMALL, _ENDS, *_APPS)]
_STEPS = [
    f"{_SMALL.partition('      - filter')[0]}      - {line}\n".encode()
    for text in _APPS
    for line in (line.strip().removeprefix("- ") for line in text.splitlines() if line.startswith("  - ", 2))
]
_DDL = ["id BIGINT, total DOUBLE", "a ARRAY<STRUCT<x: STRING, `y z`: INT>>", "m MAP<STRING, FLOAT>, v VARIANT",
        "b BOOLEAN", "", "a TIMESTAMP", "a STRUCT<>", "a INT NOT NULL COMMENT 'x'", "`select` STRING"]  # fmt: skip
_JSON = [
    {"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "number"}}}},
    {"properties": {"a": {"$ref": "#/definitions/x"}}, "definitions": {"x": {"type": ["number", "null"]}}},
    {"type": "object", "additionalProperties": {"type": "boolean"}}, {"properties": {"": {}}},
]
PARSERS = [
    Parser(declared_schemas, [text.encode() for text in _DDL]),
    Parser(json_schemas, [json.dumps(document).encode() for document in _JSON]),
    Parser(route_files, [*_FILES, *_STEPS]),
    Parser(planned_files, [*_FILES, *_STEPS]),
]
