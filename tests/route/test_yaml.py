"""Apps as YAML: the same model both ways, and errors that point at the line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock import (
    App,
    Files,
    Frame,
    Json,
    Memory,
    Rate,
    Route,
    Void,
    body,
    collect,
    count_of,
    fold,
    latest,
    lookup_table,
    sum_of,
)
from penstock.errors import BadEndpoint, BadFile, PenstockError
from penstock.expr.text import parse
from penstock.patterns.aggregate import Aggregate, aggregate
from penstock.patterns.filter import Filter
from penstock.route.yaml import from_yaml, to_yaml
from tests.plan import apps

HEAD = """\
app: orders
routes:
  - route: intake
    from: {memory: true, format: json, schema: "id BIGINT, total DOUBLE"}
    steps:
"""


def model(app: App) -> tuple[object, ...]:
    return app.name, app.routes, dict(app.sinks), app.dead_letters


def said(text: str) -> str:
    with pytest.raises(PenstockError) as caught:
        _ = from_yaml(text, "routes.yaml").plan
    return str(caught.value)


def steps(*lines: str) -> str:
    return HEAD + "".join(f"      {line}\n" for line in lines)


@pytest.mark.parametrize("make", [apps.every_step, apps.every_end, apps.every_memory])
def test_every_part_comes_back_equal(make) -> None:
    app = make()
    again = from_yaml(to_yaml(app))
    assert model(again) == model(app)
    assert again.explain() == app.explain()
    assert to_yaml(again) == to_yaml(app)


def test_a_lookup_table_is_named_by_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    apps.models(tmp_path)
    app = apps.cars("models.csv")
    text = to_yaml(app)
    assert "enrich_from: {table: models.csv, key: car, 'on': car, fields: [model]}" in text
    assert from_yaml(text).explain() == app.explain()


def test_the_layout_that_people_read() -> None:
    app = App(
        "orders",
        Route("intake", Files("orders.jsonl", format=Json("id BIGINT, total DOUBLE")))
        .filter(body.total > 0)
        .choice({"cheap": body.total < 100}, otherwise="rest"),
        sinks={"cheap": Files("out/cheap"), "rest": Void()},
        dead_letters=Files("dead"),
    )
    assert to_yaml(app) == (
        "app: orders\n"
        "routes:\n"
        "  - route: intake\n"
        "    from: {files: orders.jsonl, format: json, schema: 'id BIGINT, total DOUBLE'}\n"
        "    steps:\n"
        "      - filter: total > 0\n"
        "      - choice: {cases: {cheap: total < 100}, otherwise: rest}\n"
        "sinks:\n"
        "  cheap: {files: out/cheap}\n"
        "  rest: void\n"
        "dead_letters: {files: dead}\n"
    )


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("total > 5 AND id = 1", "total > 5 AND id = 1"),
        ("true", "TRUE"),
        ('{jsonpath: "@.total > 5"}', "total > 5"),
        ('{where: {jsonpath: "@.total > 5"}}', "total > 5"),
        ('{xpath: "/order/total > 5"}', "xpath('/order/total > 5')"),
        ('{xpath: "/o:order", namespaces: {o: "urn:orders"}}', "xpath('/o:order', 'o', 'urn:orders')"),
    ],
)
def test_ways_to_write_a_condition(written: str, meant: str) -> None:
    app = from_yaml(steps(f"- filter: {written}", "- to: {channel: x, sink: void}"))
    assert app.routes[0].steps[0] == Filter(parse(meant))


def test_words_that_yaml_takes_for_booleans_are_good_keys() -> None:
    app = from_yaml(steps("- choice: {cases: {on: total > 5, no: total < 2}, otherwise: off-road}"))
    assert app.routes[0].steps[0].sends_to() == ("on", "no", "off-road")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("{by: id, strategy: latest, size: 3}", aggregate(latest(), by="id", size=3)),
        ("{by: [id, total > 5], strategy: {collect: all}, timeout: 90}",
         aggregate(collect("all"), by=["id", "total > 5"], timeout="90 s")),
        ("{strategy: {collect: {into: lines, of: line, head: [id]}}, size: parts}",
         aggregate(collect("lines", of="line", head=["id"]), size="parts")),
        ("{by: true, strategy: {fold: {t: sum(total * 2), n: COUNT()}}, when: total > 5, batch_end: true}",
         aggregate(fold(t=sum_of("total * 2"), n=count_of()), by=True, when="total > 5", batch_end=True)),
    ],
)  # fmt: skip
def test_ways_to_write_an_aggregator(written: str, meant: Aggregate) -> None:
    app = from_yaml(steps(f"- aggregate: {written}", "- to: {channel: x, sink: void}"))
    assert app.routes[0].steps[0] == meant


def test_the_layout_of_redelivery_and_memory() -> None:
    text = to_yaml(apps.every_memory())
    assert "    on_error: {attempts: 3, delay: 500 ms, cap: 10 s, jitter: 0.2, errors: [FunctionFailed]}\n" in text
    assert "      - idempotent: id\n" in text
    assert "      - idempotent: true\n" in text


def test_the_layout_of_steps_that_stop_what_they_made() -> None:
    text = to_yaml(apps.every_step())
    assert "      - split: {of: lines, error_budget: 3}\n" in text
    assert "      - split_fields: {head: [id], tail: [kind], error_budget: 0.05}\n" in text
    assert "      - multicast: {to: [m1, m2], stop_on_exception: true}\n" in text
    assert "known: [r1, r2], separator: ;, stop_on_exception: true}\n" in text


def test_origins_are_lines_of_the_file() -> None:
    app = from_yaml(steps("- filter: total > 5", "- to: {channel: x, sink: void}"), "routes.yaml")
    assert [str(step.origin) for step in app.routes[0].steps] == [
        "routes.yaml:6  - filter: total > 5",
        "routes.yaml:7  - to: {channel: x, sink: void}",
    ]
    assert str(app.routes[0].origin).startswith("routes.yaml:3  ")


WORDS = sorted(word for node in Route.patterns() for word in node.readers())
ERRORS = {
    "budget": (
        steps("- split_fields: {error_budget: 2.5}"),
        "BadRoute: route 'intake': error_budget=2.5 is no budget\n"
        "  at   routes.yaml:6  - split_fields: {error_budget: 2.5}\n"
        "  fix  write error_budget=10 for ten failures, or 0.01 for one in a hundred",
    ),
    "stop": (
        steps("- multicast: {to: [a, b], stop_on_exception: 1}"),
        "BadFile: route 'intake': 'stop_on_exception' of 'multicast' of route 'intake' must be true or false, found 1\n"
        "  at   routes.yaml:6  - multicast: {to: [a, b], stop_on_exception: 1}",
    ),
    "unknown strategy": (
        steps("- aggregate: {by: id, strategy: {colect: all}, size: 2}"),
        "BadFile: route 'intake': 'strategy' of 'aggregate' of route 'intake': there is no strategy 'colect'\n"
        "  at   routes.yaml:6  - aggregate: {by: id, strategy: {colect: all}, size: 2}\n"
        "  fix  did you mean 'collect'? known: collect, combine, fold, latest, union",
    ),
    "strategy without settings": (
        steps("- aggregate: {by: id, strategy: collect, size: 2}"),
        "BadFile: route 'intake': 'strategy' of 'aggregate' of route 'intake': 'collect' needs settings\n"
        "  at   routes.yaml:6  - aggregate: {by: id, strategy: collect, size: 2}\n"
        "  fix  write strategy: {collect: ...}",
    ),
    "unknown fold": (
        steps("- aggregate: {by: id, strategy: {fold: {n: median(total)}}, size: 2}"),
        "BadRoute: route 'intake': there is no fold 'median'\n"
        "  at   routes.yaml:6  - aggregate: {by: id, strategy: {fold: {n: median(total)}}, size: 2}\n"
        "  fix  did you mean 'mean'? known: count, first, last, max, mean, min, sum",
    ),
    "no fold": (
        steps("- aggregate: {by: id, strategy: {fold: {n: total}}, size: 2}"),
        "BadFile: route 'intake': 'n' of 'fold' of 'strategy' of 'aggregate' of route 'intake' must be a fold, "
        "found 'total'\n"
        "  at   routes.yaml:6  - aggregate: {by: id, strategy: {fold: {n: total}}, size: 2}\n"
        "  fix  write it like sum(price) or count()",
    ),
    "negative size": (
        steps("- aggregate: {by: id, strategy: latest, size: -2}"),
        "BadRoute: route 'intake': size=-2 is not a whole number from 1 up\n"
        "  at   routes.yaml:6  - aggregate: {by: id, strategy: latest, size: -2}",
    ),
    "completion that never fires": (
        steps("- aggregate: {by: id, strategy: latest}"),
        "BadRoute: route 'intake': no group would ever be complete\n"
        "  at   routes.yaml:6  - aggregate: {by: id, strategy: latest}\n"
        "  fix  give size, timeout, interval, when, batch_end or new_group",
    ),
    "resequencer without sequence": (
        steps("- resequence: {size: 3}"),
        "BadFile: route 'intake': 'resequence' of route 'intake' needs 'sequence'\n"
        "  at   routes.yaml:6  - resequence: {size: 3}",
    ),
    "key of doubles": (
        steps("- idempotent: total", "- to: {channel: x, sink: void}"),
        "TypeMismatch: route 'intake', step 'idempotent': a key is one value, and no DOUBLE, but total is DOUBLE\n"
        "  at   routes.yaml:6  - idempotent: total\n"
        "  fix  round it: to_integer(...), or to_string(..., 2)",
    ),
    "no length of time": (
        steps("- idempotent: {key: id, keep: true}"),
        "BadFile: route 'intake': 'keep' of 'idempotent' of route 'intake' must be a length of time, found true\n"
        "  at   routes.yaml:6  - idempotent: {key: id, keep: true}\n"
        "  fix  write seconds, or text like '5 minutes'",
    ),
    "redelivery": (
        HEAD.replace("    steps:", "    on_error: {attempts: 0}\n    steps:") + "      - filter: total > 5\n",
        "BadRoute: route 'intake': attempts=0 is not a whole number from 1 up\n"
        "  at   routes.yaml:5  on_error: {attempts: 0}",
    ),
    "unknown pattern": (
        steps("- filtr: total > 5"),
        "BadRoute: step 1 of route 'intake': there is no pattern 'filtr'\n"
        "  at   routes.yaml:6  - filtr: total > 5\n"
        f"  fix  did you mean 'filter'? known: {', '.join(WORDS)}",
    ),
    "unknown key of the file": (
        HEAD + "sink: {}\n",
        "BadFile: the file has no key 'sink'\n"
        "  at   routes.yaml:6  sink: {}\n"
        "  fix  did you mean 'sinks'? known: app, dead_letters, error_budget, routes, sinks",
    ),
    "missing key": ("app: x\n", "BadFile: the file needs 'routes'\n  at   routes.yaml:1  app: x"),
    "missing key of a step": (
        steps("- choice: {cases: {a: total > 5}}"),
        "BadFile: route 'intake': 'choice' of route 'intake' needs 'otherwise'\n"
        "  at   routes.yaml:6  - choice: {cases: {a: total > 5}}",
    ),
    "wrong type": (
        "app: x\nroutes: none\n",
        "BadFile: 'routes' of the file must be a list, found 'none'\n  at   routes.yaml:2  routes: none",
    ),
    "a number where text belongs": (
        steps("- to: 5"),
        "BadFile: route 'intake': 'to' of route 'intake' must be text, found 5\n"
        "  at   routes.yaml:6  - to: 5\n"
        '  fix  write it in quotes: "5"',
    ),
    "unknown endpoint": (
        "app: x\nroutes:\n  - route: r\n    from:\n      fils: a.jsonl\n",
        "BadEndpoint: the source of route 'r' names no endpoint: 'fils' is none\n"
        "  at   routes.yaml:5  fils: a.jsonl\n"
        "  fix  did you mean 'files'? known: console, files, kafka, log, memory, parquet, postgres, rate, table, void",
    ),
    "unknown setting of an endpoint": (
        HEAD + "      - to: x\nsinks:\n  x: {files: out, mod: append}\n",
        "BadFile: 'x' of 'sinks' of the file has no key 'mod'\n"
        "  at   routes.yaml:8  x: {files: out, mod: append}\n"
        "  fix  did you mean 'mode'? known: delimiter, files, format, header, mode, quote, record, records, root,"
        " schema",
    ),
    "a sink that is only a source": (
        HEAD + "      - to: x\nsinks:\n  x: {rate: 5}\n",
        "BadEndpoint: 'x' of 'sinks' of the file is rate 5/s, which cannot be written to\n"
        "  at   routes.yaml:8  x: {rate: 5}",
    ),
    "unknown format": (
        "app: x\nroutes:\n  - route: r\n    from: {files: a, format: jsn}\n",
        "BadSchema: unknown format 'jsn'\n"
        "  at   routes.yaml:4  from: {files: a, format: jsn}\n"
        "  fix  did you mean 'json'? known: csv, json, text, xml",
    ),
    "schema that cannot be read": (
        "app: x\nroutes:\n  - route: r\n    from: {files: a, format: json, schema: id TIME}\n",
        "BadSchema: TIME is not a type of message bodies\n"
        "  at   routes.yaml:4  from: {files: a, format: json, schema: id TIME}\n"
        "  fix  use STRING, BOOLEAN, BIGINT, DOUBLE, DECIMAL(p, s), DATE, TIMESTAMP, BINARY or VARIANT",
    ),
    "expression that cannot be read": (
        steps("- filter: total >> 5"),
        "BadExpression: route 'intake': expected a value, found >\n"
        "  at   routes.yaml:6  line 1, column 8\n"
        "       total >> 5\n"
        "              ^",
    ),
    "key that is there twice": (
        steps("- translate: {a: id, a: total}"),
        "BadFile: route 'intake': 'translate' of route 'intake' has the key 'a' twice\n"
        "  at   routes.yaml:6  - translate: {a: id, a: total}",
    ),
    "two patterns in one step": (
        steps("- {filter: total > 5, to: x}"),
        "BadFile: step 1 of route 'intake' has two patterns: filter, to\n"
        "  at   routes.yaml:6  - {filter: total > 5, to: x}\n"
        "  fix  one pattern per step: begin each with a dash",
    ),
    "setting beside its pattern": (
        steps("- {filter: total > 5, discard: x}"),
        "BadFile: step 1 of route 'intake' has no key 'discard'\n"
        "  at   routes.yaml:6  - {filter: total > 5, discard: x}\n"
        "  fix  settings of 'filter' stand inside it, only 'name' stands beside it",
    ),
    "function that is not there": (
        steps("- script: {function: 'os:nothing', returns: id BIGINT}"),
        "BadFile: route 'intake': cannot import 'os:nothing': module 'os' has no attribute 'nothing'\n"
        "  at   routes.yaml:6  - script: {function: 'os:nothing', returns: id BIGINT}\n"
        "  fix  name a function of a module beside this file, as in 'module:function'",
    ),
    "step after the end": (
        steps("- to: x", "- tap: y"),
        "BadRoute: route 'intake': nothing can follow a message channel\n"
        "  at   routes.yaml:7  - tap: y\n"
        "  fix  continue in another route that reads one of its channels",
    ),
    "error of the plan": (
        steps("- filter: totl > 5", "- to: {channel: x, sink: void}"),
        "UnknownField: route 'intake', step 'filter': the body has no field 'totl'\n"
        "  at   routes.yaml:6  - filter: totl > 5\n"
        "  fix  did you mean 'total'? known: id, total",
    ),
    "sink that nobody feeds": (
        steps("- to: x") + "sinks:\n  x: void\n  y: void\n",
        "UnknownChannel: the sink of channel 'y' gets nothing: no route sends there\n"
        "  at   routes.yaml:9  y: void\n"
        "  fix  known: x",
    ),
    "not YAML": (
        "app: [x\n",
        "BadFile: not YAML: expected ',' or ']', but got '<stream end>'\n"
        "  at   routes.yaml:2\n"
        "  fix  check quotes, colons and indentation",
    ),
    "a secret that is a number": (
        "app: x\nroutes:\n- route: r\n  from: {log: t, at: 'host:1', token: 4711}\n  steps: []\n",
        "BadFile: 'token' of the source of route 'r' must be text, found something else\n"
        "  at   routes.yaml:4  from: {log: t, at: 'host:1', token: ***}\n"
        "  fix  write it in quotes",
    ),
    "a tag that would run code": (
        "app: !!python/object/apply:os.system ['true']\nroutes: []\n",
        "BadFile: 'app' of the file must be a single value, found a list\n"
        "  at   routes.yaml:1  app: !!python/object/apply:os.system ['true']",
    ),
    "a tag of another program": (
        "app: !secret x\nroutes: [{route: r, from: a}]\n",
        "BadFile: the tag '!secret' is not read\n  at   routes.yaml:1  app: !secret x\n  fix  write plain values",
    ),
    "an empty file": ("", "BadFile: the file is empty\n  at   routes.yaml:1\n  fix  write at least app: and routes:"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_say_what_where_and_what_to_do(case: str) -> None:
    text, expected = ERRORS[case]
    assert said(text) == expected


@pytest.mark.parametrize(
    ("source", "what"),
    [
        (Memory(({"id": 1},)), "the source of route 'r': messages in memory cannot be written as YAML"),
        (Frame(None, Json("id BIGINT")), "the source of route 'r': dataframe cannot be written as YAML"),
    ],
)
def test_what_lives_in_memory_cannot_be_written(source, what: str) -> None:
    with pytest.raises(BadEndpoint) as caught:
        to_yaml(App("a", Route("r", source).to("x", Void())))
    assert caught.value.what == what


def test_functions_without_a_name_cannot_be_written() -> None:
    with pytest.raises(BadFile) as caught:
        to_yaml(App("a", Route("r", Rate()).filter(lambda fields: True).to("x", Void())))
    assert caught.value.what.startswith("step 1 of route 'r': the function ")
    assert caught.value.fix == "define it with def at the top of a module that can be imported"
    assert os.path.basename(caught.value.origin.file) == "test_yaml.py"


def test_tables_without_a_file_cannot_be_written() -> None:
    table = lookup_table([{"id": 1, "name": "a"}], key="id", name="names")
    with pytest.raises(BadEndpoint) as caught:
        to_yaml(App("a", Route("r", Memory(format=Json("id BIGINT"))).enrich_from(table, on=body.id).to("x", Void())))
    assert caught.value.what == (
        "step 1 of route 'r': the table names was not read from a file and cannot be written as YAML"
    )
