"""Errors show the line that is wrong, and not the secrets in it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from penstock.errors import Origin, PenstockError, did_you_mean
from penstock.route.load import load


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ('Log("t", token="s3cret", key="id")', 'Log("t", token="***", key="id")'),
        ("Log('t', token = 's3\\'cr et')", "Log('t', token = '***')"),
        ('options={"sasl.password": "hunter2"}', 'options={"sasl.password": "***"}'),
        ('options=(("sasl.password", "hunter2"),)', 'options=(("sasl.password", "***"),)'),
        ("client_secret=f'a{b}'", "client_secret=f'***'"),
        ("token: abc123", "token: ***"),
        ('Postgres("postgresql://u:pw@h/db", "t")', 'Postgres("postgresql://u:***@h/db", "t")'),
        ('Log("t", token="cut off', 'Log("t", token="***'),
        ('Log("t", token=("""a"b""" "c" + r"d"), key="id")', 'Log("t", token=("""***""" "***" + r"***"), key="id")'),
        ("Log('t', token='''a'b''', key='id')", "Log('t', token='''***''', key='id')"),
        ('Log("t", token="a" "b", key="id")', 'Log("t", token="***" "***", key="id")'),
        ('Log("t", tokens=["a", "b"], key="id")', 'Log("t", tokens=["***", "***"], key="id")'),
        ('Log("t", token="""cut off', 'Log("t", token="""***'),
        ('Log("t", token=os.environ["LOG"])', 'Log("t", token=os.environ["LOG"])'),
        ("Log('t')  # it's a token='x'", "Log('t')  # it's a token='x'"),
        ('Log("t", token="${LOG_TOKEN}")', 'Log("t", token="${LOG_TOKEN}")'),
        ("token: ${LOG_TOKEN}", "token: ${LOG_TOKEN}"),
        ('.filter(body.token == "x")', '.filter(body.token == "x")'),
    ],
)
def test_a_line_is_quoted_without_its_secrets(line: str, shown: str) -> None:
    error = PenstockError("wrong", Origin("app.py", 3, line), "mend it")
    assert str(error) == f"PenstockError: wrong\n  at   app.py:3  {shown}\n  fix  mend it"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("log: {topic: t, token: s3cret, key: id}", "log: {topic: t, token: ***, key: id}"),
        ("- {token: s3 cr:et}", "- {token: ***}"),
        ("{'token': s3cret}", "{'token': ***}"),
        ('{"token": "s3, cret", key: id}', '{"token": "***", key: id}'),
        ("{token: '${LOG_TOKEN}', key: id}", "{token: '${LOG_TOKEN}', key: id}"),
        ("token: s3, cret}", "token: ***"),
    ],
)
def test_a_line_of_yaml_is_quoted_without_its_secrets(line: str, shown: str) -> None:
    assert str(Origin("app.yaml", 3, line)) == f"app.yaml:3  {shown}"
    assert str(Origin.within("app.yaml", 1, line)) == f"app.yaml:1  {shown}"


PYTHON = '''\
Log("t", token=("first"  # it's
    "second" f"third"
    r"fourth"), key="id")
Log("t", password="""fifth
    "sixth"
    seventh""", key="id")
Log("t", secret=\\
    "eighth", key="id")
"it's", 'no "', "shown"
'''
YAML = """\
routes:
- from: {log: {topic: it's, token: first
    second, key: id}}
- from:
    password: |
      third
      fourth
    api_key: "fifth
      sixth"
    credentials:
    - seventh
    - {eighth: ninth}
    secret: tenth
      sixth
    key: id
"""


def test_a_secret_over_several_lines_is_in_none_of_them() -> None:
    for file, text, kept in (("app.py", PYTHON, ['"id"', '"shown"']), ("app.yaml", YAML, ["key: id", "it's"])):
        quoted = [str(Origin.within(file, number + 1, text)) for number in range(text.count("\n"))]
        everything = "\n".join(quoted)
        for word in ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"):
            assert word not in everything
        assert all(word in everything for word in kept)
        assert [line.split()[0] for line in quoted] == [f"{file}:{number + 1}" for number in range(len(quoted))]


def test_yaml_that_is_cut_off_shows_nothing_of_a_secret_that_has_begun() -> None:
    text = 'log:\n  token: "first\n    second\n    third\n'
    assert [Origin.within("app.yaml", number, text).text for number in (2, 3, 4)] == ["token:***", "***", "***"]


def test_the_line_of_a_caller_is_masked_as_a_part_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text('from penstock import App\nApp(\n    dict(token="""first\nsecond""", a=App("b"))\n)\n')
    with pytest.raises(PenstockError) as caught:
        load(str(file))
    assert str(file) in str(caught.value)
    assert "first" not in str(caught.value)
    assert "second" not in str(caught.value)


@pytest.mark.parametrize("file", ["app.py", "app.yaml"])
@pytest.mark.parametrize(
    "part",
    [
        "x",
        "token",
        "token ",
        "token=",
        "token: ",
        "{token: ",
        "'token",
        'token="',
        "token=(",
        '"""',
        "- ",
        "://a:",
        "://a@",
        "://a:b@",
        "\\",
    ],
)
def test_the_time_for_a_line_grows_with_its_length(file: str, part: str) -> None:
    def seconds(times: int) -> float:
        started = time.process_time()
        str(Origin(file, 3, part * times))
        return time.process_time() - started

    assert seconds(3200) < 0.5
    assert seconds(64_000) < 5  # twenty times as long: a quadratic walk would take 400 times as long


def test_the_nearest_of_very_many_names_is_found_at_once() -> None:
    names = [f"orders-of-customer-{number:05}" for number in range(50_000)]
    before = time.process_time()
    found = did_you_mean("orders-of-customer-2345x", names)
    assert time.process_time() - before < 0.3
    assert found.startswith("did you mean 'orders-of-customer-23")
