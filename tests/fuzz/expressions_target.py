"""Text expressions: they come back after they are printed, and batches answer as single messages do."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.expr import special
from penstock.expr.evaluate import Scope, evaluate
from penstock.expr.functions import FUNCTIONS
from penstock.expr.nodes import Expr
from penstock.expr.text import parse, to_text
from penstock.expr.types import NULL, type_of
from penstock.expr.variant import bind
from penstock.expr.vectorized import evaluate_batch, is_vectorized
from penstock.formats.arrow import arrow_type
from penstock.patterns.duration import duration_text, seconds
from penstock.schema import BOOLEAN, schema
from tests.fuzz.imports import FewModules
from tests.fuzz.parser import Parser, text_of

special.importlib = FewModules  # type: ignore[attr-defined]

BODY = schema(
    "n BIGINT, d DOUBLE, s STRING, t STRING, b BOOLEAN, tags ARRAY<STRING>, lines ARRAY<STRUCT<n: BIGINT, s: STRING>>, "
    "at STRUCT<n: BIGINT, s: STRING, deep: STRUCT<d: DOUBLE, b: BOOLEAN>>, v VARIANT, m MAP<STRING, BIGINT>"
)
ROWS: list[dict[str, Any]] = [
    dict.fromkeys(BODY.names),
    {"n": 1, "d": 1.0, "s": "a", "t": "ab", "b": True, "tags": ["a", None, "b"], "lines": [{"n": 1, "s": "a"}, None],
     "at": {"n": 2, "s": "é", "deep": {"d": -0.0, "b": False}}, "v": {"a": [1, "x", None]}, "m": {"a": 1}},
    {"n": -(2**63), "d": 1e308, "s": "", "t": "7", "b": False, "tags": [], "lines": [], "v": None, "m": None,
     "at": {"n": None, "s": None, "deep": None}},
    {"n": 2**53 + 1, "d": float(2**53), "s": "a\x00", "t": "-1.5e3", "b": None, "tags": ["é"], "v": 7, "m": {},
     "lines": [{"n": 2**63 - 1, "s": "\U0001f600"}], "at": None},
]  # fmt: skip
BATCH = pa.array([row | {"v": None} for row in ROWS], arrow_type(BODY))


def _read(data: bytes) -> Expr | None:
    text = text_of(data)
    try:
        return None if text is None else parse(text)
    except PenstockError:
        return None


def printed_expressions_come_back(data: bytes) -> None:
    tree = _read(data)
    if tree is not None and "inf" not in repr(tree):  # refused when it is checked
        printed = to_text(tree)
        assert repr(parse(printed)) == repr(tree), printed


def batches_answer_alike(data: bytes) -> None:
    tree = _read(data)
    if tree is None or b"python" in data.lower():  # a function of the user's may do what it likes
        return
    try:
        kind = type_of(tree, BODY)
        bound = bind(tree, BODY)
    except PenstockError:
        return
    alone = [evaluate(bound, Scope(row, {"region": "EU"})) for row in ROWS]
    if kind != NULL and is_vectorized(bound, BODY):
        together = evaluate_batch(bound, BATCH, arrow_type(kind)).to_pylist()
        assert kind != BOOLEAN or together == alone
    if kind == BOOLEAN:
        assert all(value in (True, False, None) for value in alone)


def durations(data: bytes) -> None:
    text = text_of(data)
    try:
        found = 0.0 if text is None else seconds(text, "delay")
    except PenstockError:
        return
    if found:
        assert seconds(duration_text(found), "delay") == found


_ARGUMENTS = {"substring": "s, 0, 1", "round": "d, 2", "join": "tags, ','", "size": "tags", "replace": "s, 'a', t",
              "extract": "s, '(a)'", "to_string": "d, 2", "absolute": "n", "modulo": "n, 2", "to_integer": "s",
              "to_double": "s", "length": "s", "trim": "s", "upper": "s", "lower": "s"}  # fmt: skip
_CALLS = [f"{name}({_ARGUMENTS.get(name, 's, t')})" for name in FUNCTIONS]
_TEXTS = [
    "n > 1 AND d <= 2.5 OR NOT b", "s = 'it''s' AND t != \"x\"", "n IN (1, -2, NULL)", "n BETWEEN 1 AND 3",
    "s LIKE 'a%' OR t NOT LIKE '%b%'", "at.deep.d IS NOT NULL AND at.n IS NULL", "any(tags, item = 'a')",
    "select(lines, item.n > 1)", "lines[0].s = 'a'", "m['a'] = 1", "v.a[0] = 1 AND v IS NULL", "header.region = 'EU'",
    "CASE WHEN n > 1 THEN 0 WHEN b THEN 1 ELSE 2 END", "CASE s WHEN 'a' THEN TRUE END", "lookup(s, 'a', 1, 'b', 2, 3)",
    "-n * 2 + d / 3 - n % 2", "`odd name` = 1_000 OR .5e-3 < 1E5", "jsonpath('@.n > 1 && @.s == \"a\"')",
    "xpath('//a[@b]') AND xpath_number('//a') > 1", "meta('id') = 'x'", "python('os.path:join', 'STRING', s, t)",
    *_CALLS,
]  # fmt: skip
_SEEDS = [text.encode() for text in _TEXTS]
PARSERS = [
    Parser(printed_expressions_come_back, _SEEDS),
    Parser(batches_answer_alike, _SEEDS),
    Parser(durations, [b"5 minutes", b"500 ms", b"1.5e3 s", b".5h", b" 2 days ", b"1 sec"]),
]
