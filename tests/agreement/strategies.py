"""Random routes and random messages for them."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from hypothesis import strategies as st

from penstock import App, Json, Memory, Message, Route, header, join, jsonpath, lookup_table
from penstock.expr import nodes
from penstock.expr.columns import Column, body, default, expression
from penstock.expr.nodes import Expr

SCHEMA = (
    "n BIGINT, d DOUBLE, s STRING, b BOOLEAN, tags ARRAY<STRING>, numbers ARRAY<BIGINT>, "
    "lines ARRAY<STRUCT<price: DOUBLE, name: STRING, parts: ARRAY<BIGINT>>>, "
    "who STRUCT<name: STRING, age: BIGINT, home: STRUCT<city: STRING, zip: BIGINT>>, "
    "m MAP<STRING, BIGINT>, junk STRING, v VARIANT"
)
OWNERS = lookup_table([{"key": "a", "city": "Rome", "rank": 1}, {"key": "é", "city": None, "rank": 2}], key="key")

# Letters whose upper and lower case are the same in every Unicode version in use.
TEXT = st.one_of(
    st.sampled_from(
        [
            "",
            "a",
            "b",
            "left, right",
            "1a, b",
            "é",
            "Zoë",
            "left, right",
            "1a, b",
            " x ",
            "a,b",
            "1",
            "-5",
            "1.5",
            "true",
            "日本",
            "😀",
            "x\ty",
            'q"q',
            "\\",
        ]
    ),
    st.text(alphabet='abcXYZ019 .,-_éßÄ日😀"\\/\n\t\u2028', max_size=6),
)
INTEGERS = st.one_of(
    st.integers(-5, 5), st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1, 10**12]), st.integers(-(2**63), 2**63 - 1)
)
DOUBLES = st.one_of(
    st.sampled_from([0.0, 1.5, -2.25, 1e300, -1e300, 0.1, 1e-310]), st.floats(-1e6, 1e6), st.integers(-5, 5)
)
WRONG = st.one_of(
    st.none(), st.booleans(), INTEGERS, DOUBLES, TEXT, st.lists(st.integers(0, 3), max_size=2), st.just({"x": 1})
)


def _maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(values, values, values, st.none())


LINES = st.fixed_dictionaries(
    {},
    optional={
        "price": _maybe(DOUBLES),
        "name": _maybe(TEXT),
        "parts": _maybe(st.lists(_maybe(st.integers(0, 9)), max_size=3)),
    },
)
WHO = st.fixed_dictionaries(
    {},
    optional={
        "name": _maybe(TEXT),
        "age": _maybe(INTEGERS),
        "home": _maybe(st.fixed_dictionaries({}, optional={"city": _maybe(TEXT), "zip": _maybe(INTEGERS)})),
    },
)
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "n": _maybe(INTEGERS),
        "d": _maybe(DOUBLES),
        "s": _maybe(st.one_of(TEXT, TEXT, INTEGERS, st.just({"deep": [1, {"x": None}]}))),
        "b": _maybe(st.booleans()),
        "tags": _maybe(st.lists(_maybe(TEXT), max_size=3)),
        "numbers": _maybe(st.lists(_maybe(INTEGERS), max_size=3)),
        "lines": _maybe(st.lists(_maybe(LINES), max_size=3)),
        "who": _maybe(WHO),
        "m": _maybe(st.dictionaries(TEXT, _maybe(INTEGERS), max_size=2)),
        "junk": _maybe(TEXT),
        "v": st.sampled_from([None, 5, "text", True, [], {}, {"a": None, "b": [1, None, "x"]}, [[2.5], {"a": 1}]]),
        "unread": WRONG,
    },
)
WRONG_BODIES = st.builds(
    lambda good, name, wrong: {**good, name: wrong},
    BODIES,
    st.sampled_from(["n", "d", "b", "tags", "lines", "who", "m"]),
    WRONG,
)
BROKEN = st.sampled_from(
    [
        b"",
        b"   ",
        b"null",
        b"[]",
        b"[{}]",
        b"7",
        b'"x"',
        b"{",
        b'{"n": 1',
        b'{"n": 1} x',
        b'{"n": 1}{"n": 2}',
        b'{"n": 1},{"n": 2}',
        b'{"n": 1, "n": 2}',
        b'{"n": "x", "n": 2}',
        b'{"n": 2, "n": "x"}',
        b"{'n': 1}",
        b'{"n": 01}',
        b'{"n": 1.0}',
        b'{"n": 1e2}',
        b'{"n": 9223372036854775808}',
        b'{"d": 1e999}',
        b'{"d": NaN}',
        b'{"s": "\xff"}',
        b"\xef\xbb\xbf{}",
        b'{"s": "\\ud800"}',
        b'{"s": "\\u00e9"}',
        b'{"s": "\\ud83d\\ude00"}',
        b'{"unread": ' + b"[" * 600 + b"]" * 600 + b"}",
        b'{"unread": ' + b"[" * 300 + b"]" * 300 + b"}",
        b' {"n": 1} \n',
        b'{"s": 1.50}',
        b'{"s": [1, 2 ]}',
        b'{"b": "true"}',
        b"not json",
        b'{"n": 1}\x00',
    ]
)
RAW = st.one_of(
    BODIES.map(lambda value: json.dumps(value, ensure_ascii=False).encode()),
    BODIES.map(lambda value: json.dumps(value).encode()),
    WRONG_BODIES.map(lambda value: json.dumps(value).encode()),
    BROKEN,
)
MESSAGES = st.lists(RAW, max_size=12)

HEADERS = st.dictionaries(st.sampled_from(["given", "text", "number", "x"]), TEXT, max_size=3)
WITH_HEADERS = st.lists(RAW | st.builds(lambda raw, given: Message("", raw, headers=given), RAW, HEADERS), max_size=12)

NUMBER_FIELDS = [
    ("n",),
    ("d",),
    ("who", "age"),
    ("who", "home", "zip"),
    ("numbers", 0),
    ("lines", 1, "price"),
    ("numbers", -1),
]
WHOLE_NUMBERS = [("n",), ("who", "age"), ("who", "home", "zip"), ("numbers", 0)]
INSIDE = ["who.name", "who.home.city", "who.home.note", "who.extra.deep.note", "new.note"]
TEXT_FIELDS = [("s",), ("who", "name"), ("who", "home", "city"), ("tags", 0), ("lines", 0, "name"), ("tags", -1)]


def _field(paths: list[Any]) -> st.SearchStrategy[Expr]:
    return st.sampled_from(paths).map(nodes.Field)


@cache
def numbers(depth: int = 2) -> st.SearchStrategy[Expr]:
    leaf = st.one_of(_field(NUMBER_FIELDS), st.one_of(st.integers(-5, 5), st.floats(-9, 9)).map(nodes.Literal))
    if depth == 0:
        return leaf
    inner, text = numbers(depth - 1), texts(depth - 1)
    return st.one_of(
        leaf,
        st.builds(
            lambda name, a, b: nodes.Call(name, (a, b)),
            st.sampled_from(["add", "subtract", "multiply", "divide"]),
            inner,
            inner,
        ),
        st.builds(lambda a: nodes.Call("absolute", (a,)), inner),
        st.builds(lambda a, digits: nodes.Call("round", (a, nodes.Literal(digits))), inner, st.integers(0, 4)),
        st.builds(lambda a: nodes.Call("length", (a,)), text),
        st.builds(lambda a, name: nodes.Call(name, (a,)), text, st.sampled_from(["to_integer", "to_double"])),
        st.builds(lambda a: nodes.Call("size", (a,)), _field([("tags",), ("numbers",), ("lines",)])),
        st.builds(lambda a, b: nodes.Call("coalesce", (a, b)), inner, inner),
        st.builds(lambda t, a, b: nodes.Case(((t, a),), b), conditions(depth - 1), inner, inner),
    )


@cache
def texts(depth: int = 2) -> st.SearchStrategy[Expr]:
    leaf = st.one_of(_field(TEXT_FIELDS), TEXT.map(nodes.Literal))
    if depth == 0:
        return leaf
    inner = texts(depth - 1)
    separator = st.sampled_from([",", "a", " ", ".", "\\", "|"]).map(nodes.Literal)
    pattern = st.sampled_from(["([0-9]+)", "(a|b)x?", "(.)", "x(.*)"]).map(nodes.Literal)
    return st.one_of(
        leaf,
        st.builds(lambda name, a: nodes.Call(name, (a,)), st.sampled_from(["upper", "lower", "trim"]), inner),
        st.builds(lambda a, b: nodes.Call("concat", (a, b)), inner, inner),
        st.builds(
            lambda a, i, n: nodes.Call("substring", (a, nodes.Literal(i), nodes.Literal(n))),
            inner,
            st.integers(0, 3),
            st.integers(0, 3),
        ),
        st.builds(lambda a, b, c: nodes.Call("replace", (a, b, c)), inner, separator, inner),
        st.builds(lambda a, p: nodes.Call("extract", (a, p)), inner, pattern),
        st.builds(lambda a, p: nodes.Call("join", (a, p)), _field([("tags",)]), separator),
        st.builds(lambda a: nodes.Call("to_string", (a,)), _field([("n",), ("b",), ("who", "age")])),
        st.builds(lambda a: nodes.Call("to_string", (a, nodes.Literal(2))), _field([("d",)])),
        st.builds(lambda a, o: nodes.Lookup(a, (("a", "one"), ("é", "two")), o), inner, inner),
        st.builds(lambda t, a, b: nodes.Case(((t, a),), b), conditions(depth - 1), inner, inner),
    )


@cache
def conditions(depth: int = 2) -> st.SearchStrategy[Expr]:
    operator = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    below = max(depth - 1, 0)
    item = st.builds(
        lambda o, v: nodes.Compare(o, nodes.Field(("price",), nodes.ITEM), nodes.Literal(v)),
        operator,
        st.integers(-3, 3),
    )
    leaf = st.one_of(
        st.builds(nodes.Compare, operator, numbers(below), numbers(below)),
        st.builds(nodes.Compare, operator, texts(below), texts(below)),
        st.just(nodes.Field(("b",))),
        st.builds(
            nodes.Present, _field([*NUMBER_FIELDS, *TEXT_FIELDS, ("who",), ("who", "home"), ("lines",), ("m", "a")])
        ),
        st.builds(lambda a, o: nodes.In(a, tuple(o)), texts(below), st.lists(TEXT, min_size=1, max_size=3)),
        st.builds(
            lambda a, o: nodes.In(a, tuple(o)),
            _field(NUMBER_FIELDS),
            st.lists(st.integers(-3, 3), min_size=1, max_size=3),
        ),
        st.builds(lambda p: nodes.AnyOf(nodes.Field(("lines",)), p), item),
        st.sampled_from(["@.v.a == 1", "@.v.b[1] == null", "@.v[?@ == 2.5]", "length(@.v) > 1", "$.v.a"]).map(
            lambda q: expression(jsonpath(q))
        ),
        st.builds(
            lambda n, a, b: nodes.Call(n, (a, b)),
            st.sampled_from(["contains", "starts_with", "ends_with"]),
            texts(below),
            texts(below),
        ),
        st.builds(
            lambda n, a: nodes.Call(n, (a, nodes.Literal("[a-c]+.?"))),
            st.sampled_from(["matches", "search"]),
            texts(below),
        ),
    )
    if depth == 0:
        return leaf
    inner = conditions(depth - 1)
    return st.one_of(
        leaf,
        st.builds(lambda a, b: nodes.And((a, b)), inner, inner),
        st.builds(lambda a, b: nodes.Or((a, b)), inner, inner),
        st.builds(nodes.Not, inner),
    )


def _grown(route: Route, draw: Any) -> tuple[Route, str]:
    """One more step that keeps the fields of the schema, and what it was."""
    kinds = ["filter", "strict filter", "enrich", "enrich inside", "table", "tap", "drop", "python", "headers"]
    kind = draw(st.sampled_from(kinds))
    match kind:
        case "filter":
            return route.filter(Column(draw(conditions()))), kind
        case "strict filter":
            return route.filter(Column(draw(conditions(1))), missing="dead"), kind
        case "enrich":
            return route.enrich({"d": call_double(draw(numbers())), "extra.text": Column(draw(texts()))}), kind
        case "enrich inside":
            new = {name: Column(draw(texts())) for name in draw(st.sets(st.sampled_from(INSIDE), min_size=1))}
            return route.enrich({**new, "who.home.zip": Column(draw(_field(WHOLE_NUMBERS)))}), kind
        case "table":
            missing, into = draw(st.sampled_from(["null", "dead"])), draw(st.sampled_from([None, "owner"]))
            return route.enrich_from(OWNERS, body.s, missing=missing, into=into), kind
        case "headers":
            return with_headers(route, draw), kind
        case "drop" if all(step.pattern != "content filter" for step in route.steps):
            return route.drop("junk"), kind
        case "python":
            return route.filter(short_text), kind
    return route.tap("tapped"), "tap"


def with_headers(route: Route, draw: Any) -> Route:
    """Some headers set and some removed, and sometimes one of them read again."""
    kinds = {"text": texts(), "number": numbers(), "flag": conditions(1), "copy": st.just(expression(header["text"]))}
    chosen = draw(st.sets(st.sampled_from([*kinds]), max_size=3))
    values = {name: Column(draw(kinds[name])) for name in sorted(chosen)}
    removed = draw(st.sets(st.sampled_from(["given", "text", "flag", "unknown"]), min_size=not values)) - chosen
    route = route.headers(values, remove=sorted(removed or {"unknown"}))
    read = {"s": default(header["text"], header["number"])}
    return route.enrich(read) if draw(st.booleans()) else route


def call_double(expression: Expr) -> Column:
    return Column(nodes.Call("to_double", (expression,)))


def short_text(fields: dict[str, Any]) -> bool:
    return len(fields["s"]) < 4  # fails on purpose where s is missing


def ended(route: Route, draw: Any) -> Route:
    """An end with channels left and right."""
    kind = draw(
        st.sampled_from(["choice", "strict choice", "round", "weighted", "sticky", "random", "multicast", "recipients"])
    )
    match kind:
        case "choice":
            return route.choice({"left": Column(draw(conditions()))}, otherwise="right")
        case "strict choice":
            return route.choice({"left": Column(draw(conditions(1)))}, otherwise="right", missing="dead")
        case "round":
            return route.balance("left", "right")
        case "weighted":
            return route.balance("left", "right", weights=[2, 1])
        case "sticky":
            return route.balance("left", "right", sticky=draw(st.sampled_from([body.s, body.n, body.b])))
        case "random":
            return route.balance("left", "right", random_seed=draw(st.integers(0, 9)))
        case "multicast":
            return route.multicast("left", "right")
    return route.recipients(draw(st.sampled_from([body.s, body.tags])), known=["left", "right", "a", "b", "1"])


def finished(name: str, draw: Any, joined: bool) -> Route:
    """The end of a branch: maybe a rewrite, then a channel."""
    route = Route(name, name)
    kind = draw(
        st.sampled_from(["plain", "translate", "keep", "split", "split scalars", "split around", "fields", "script"])
    )
    match kind:
        case "translate":
            route = route.translate(
                {"x": call_double(draw(numbers())), "y.z": Column(draw(texts())), "c": Column(draw(conditions()))}
            )
        case "keep":
            route = route.keep("n", "who.home.city")
        case "split":
            route = route.split(body.lines)
        case "split scalars":
            route = route.split(body.tags)
        case "split around":
            route = route.split(body.lines, into="line", head=["n"], tail=["s"])
        case "fields":
            route = route.split_fields(head=["n"], tail=["s"])
        case "script":
            route = route.drop("v").script(double_numbers, "n BIGINT, d DOUBLE")
    return route.to("joined" if joined else f"{name} out")


def double_numbers(table: Any) -> Any:
    import pyarrow
    import pyarrow.compute

    rows = table.to_pylist()
    if any(row["n"] == 3 for row in rows):
        raise ValueError("three")
    made = [
        {"n": row["n"], "d": row["d"], "_row": i} for i, row in enumerate(rows) for _ in range(len(row["tags"] or [0]))
    ]
    return pyarrow.Table.from_pylist(made, schema=pyarrow.schema([("n", "int64"), ("d", "float64"), ("_row", "int64")]))


@st.composite
def apps(draw: Any) -> App:
    route = Route("start", Memory((), Json(SCHEMA)))
    tapped = False
    for _ in range(draw(st.integers(0, 3))):
        grown, kind = _grown(route, draw)
        if kind == "tap" and tapped:
            continue
        route, tapped = grown, tapped or kind == "tap"
    start = ended(route, draw)
    names = [name for name in start.steps[-1].sends_to() if name in ("left", "right")]
    sinks = {name: Memory() for name in start.steps[-1].sends_to() if name not in names}
    may_join = draw(st.booleans())
    branches = []
    if may_join:
        branches = [Route(name, name).filter(Column(draw(conditions(1)))).to(f"{name} joined") for name in names]
        last = Route("last", join(*(f"{name} joined" for name in names)))
        branches.append(last.enrich({"end": "yes"}).to("end"))
        sinks["end"] = Memory()
    else:
        branches = [finished(name, draw, False) for name in names]
        sinks |= {f"{name} out": Memory() for name in names}
    if tapped:
        sinks["tapped"] = Memory()
    return App("random", start, *branches, sinks=sinks, dead_letters=Memory())


NAMED_NUMBERS = [path for path in NUMBER_FIELDS if all(isinstance(part, str) for part in path)]
NAMED_TEXTS = [path for path in TEXT_FIELDS if all(isinstance(part, str) for part in path)]


@cache
def simple_conditions(depth: int = 2) -> st.SearchStrategy[Expr]:
    """Conditions on fields, outside arrays, that have a name."""
    operator = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    number, text = _field(NAMED_NUMBERS), _field(NAMED_TEXTS)
    leaf = st.one_of(
        st.builds(nodes.Compare, operator, number, number | st.one_of(INTEGERS, DOUBLES).map(nodes.Literal)),
        st.builds(nodes.Compare, operator, TEXT.map(nodes.Literal) | text, text),
        st.just(nodes.Field(("b",))),
        st.builds(nodes.Present, _field([*NAMED_NUMBERS, *NAMED_TEXTS, ("who",), ("who", "home"), ("lines",), ("m",)])),
        st.builds(nodes.In, text, st.lists(TEXT, min_size=1, max_size=3).map(tuple)),
        st.builds(nodes.In, _field([("n",), ("who", "age")]), st.lists(INTEGERS, min_size=1, max_size=3).map(tuple)),
        st.builds(
            lambda name, value, part: nodes.Call(name, (value, nodes.Literal(part))),
            st.sampled_from(["contains", "starts_with", "ends_with"]),
            text,
            TEXT,
        ),
    )
    if depth == 0:
        return leaf
    inner = simple_conditions(depth - 1)
    return st.one_of(
        leaf,
        st.builds(lambda a, b: nodes.And((a, b)), inner, inner),
        st.builds(lambda a, b: nodes.Or((a, b)), inner, inner),
        st.builds(nodes.Not, inner),
    )


@st.composite
def deciding_apps(draw: Any) -> App:
    """Routes that decide by simple conditions before and after copies; few fields are read by anything else."""

    def test() -> Column:
        return Column(draw(simple_conditions()))

    start = Route("start", Memory((), Json(SCHEMA)))
    if draw(st.booleans()):
        start = start.filter(test())
    if draw(st.booleans()):
        start = start.filter(Column(draw(conditions(1))), missing=draw(st.sampled_from(["false", "dead"])))
    if draw(st.booleans()):
        start = start.choice([("left", test()), ("right", test()), ("left", test())], otherwise="right")
    else:
        start = start.multicast("left", "right")
    left = Route("left", "left").filter(test())
    if draw(st.booleans()):
        left = left.translate({"n": body.n, "city": body.who.home.city}).filter(body.n > 0)
    right = Route("right", "right").tap("copy").choice({"yes": test(), "no": test()}, otherwise="yes")
    sinks = {name: Memory() for name in ("out", "copy", "yes", "no")}
    return App("deciding", start, left.to("out"), right, sinks=sinks, dead_letters=Memory())
