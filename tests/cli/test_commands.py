"""The commands that need no Spark, run as a user runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock import __version__
from penstock.cli.main import app, main

APP = """\
from penstock import App, Json, Memory, Route, Void, body

app = App(
    "orders",
    Route("intake", Memory(format=Json("id BIGINT, total DOUBLE")))
    .filter(body.id > 0)
    .choice({"cheap": body.total < 100}, otherwise="rest"),
    sinks={"cheap": Void(), "rest": Void()},
)
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


def run(*arguments: str, given: str | None = None) -> str:
    result = CliRunner().invoke(app, arguments, input=given, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def end(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["penstock", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    return int(caught.value.code or 0)


def test_help_teaches() -> None:
    text = run("--help")
    assert "penstock new orders" in text
    assert all(name in text for name in ("run", "explain", "diagram", "trace", "new", "demo", "doctor", "convert"))


def test_version() -> None:
    assert run("--version") == f"penstock {__version__}\n"


def test_explain_prints_the_plan() -> None:
    reads = "reads id BIGINT, total DOUBLE"
    head = f"app orders\n\nintake := Source[memory, json]  {reads}\n"
    assert run("explain", "app.py").startswith(head)


def test_convert_prints_yaml_that_is_the_same_app(here: Path) -> None:
    run("convert", "app.py", "-o", "routes.yaml")
    assert run("convert", "app.py") == (here / "routes.yaml").read_text()
    assert run("explain", "routes.yaml") == run("explain", "app.py")


def test_diagram_follows_the_ending(here: Path) -> None:
    run("diagram", "app.py", "-o", "app.svg")
    assert (here / "app.svg").read_text().startswith("<svg ")
    run("diagram", "app.py", "-o", "app.mmd")
    assert (here / "app.mmd").read_text() == run("diagram", "app.py")
    assert run("diagram", "app.py", "--format", "svg") == (here / "app.svg").read_text()


def test_diagram_refuses_other_formats(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert end(monkeypatch, "diagram", "app.py", "-o", "app.png") == 2
    assert capsys.readouterr().err == (
        "BadFile: cannot tell the format of app.png\n  fix  end it in .svg or .mmd, or give --format\n"
    )


def test_trace_shows_each_condition(here: Path) -> None:
    expected = (
        "intake.filter  (message filter)  on\n"
        "    id > 0 = true\n"
        "intake.choice  (content-based router)  -> cheap\n"
        "    total < 100 = true\n"
        'delivered to cheap: {"id": 1, "total": 5}\n'
    )
    message = '{"id": 1, "total": 5}'
    (here / "message.json").write_text(message + "\n")
    (here / "messages.jsonl").write_text(f"\n{message}\n{message}\n")
    assert run("trace", "app.py", message) == expected
    assert run("trace", "app.py", "message.json") == expected
    assert run("trace", "app.py", "messages.jsonl") == expected
    assert run("trace", "app.py", "-", given=message + "\n") == expected


def test_trace_shows_where_a_message_ends_early() -> None:
    assert run("trace", "app.py", '{"id": 0}').endswith("filtered by intake.filter\n")
    assert "dead letter of intake.decode: MalformedBody: " in run("trace", "app.py", "{broken")


def test_trace_as_json() -> None:
    read = json.loads(run("trace", "app.py", '{"id": 1, "total": 500}', "--json"))
    assert [step["step"] for step in read["steps"]] == ["filter", "choice"]
    assert read["steps"][1]["values"] == [{"expression": "total < 100", "value": False}]
    assert list(read["delivered"]) == ["rest"]
    assert read["dead"] == []


def test_trace_takes_headers(here: Path) -> None:
    changed = APP.replace("body.id > 0", "header.region == 'EU'").replace("body\n", "body, header\n")
    (here / "headers.py").write_text(changed)
    assert "filtered" in run("trace", "headers.py", "{}")
    assert "delivered" in run("trace", "headers.py", "{}", "--header", "region=EU")


def test_trace_asks_which_source(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    two = APP.replace("    sinks=", '    Route("more", Memory(format=Json("id BIGINT"))).to("rest"),\n    sinks=')
    (here / "two.py").write_text(two)
    assert end(monkeypatch, "trace", "two.py", "{}") == 2
    assert capsys.readouterr().err == (
        "BadRoute: app 'orders' has 2 sources: intake, more\n  fix  say which one gets the message: --route intake\n"
    )
    assert "delivered to rest" in run("trace", "two.py", "{}", "--route", "more")


def test_trace_says_which_files_hold_no_message(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = APP.replace("Memory(format=", "Files('in', format=").replace("Json, Memory", "Files, Json")
    (here / "files.py").write_text(files)
    (here / "empty.json").write_text("[\n]\n")
    (here / "no.jsonl.gz").write_text("no")
    assert end(monkeypatch, "trace", "files.py", "empty.json") == 2
    assert "BadFile: empty.json holds no message\n" in capsys.readouterr().err
    assert end(monkeypatch, "trace", "files.py", "no.jsonl.gz") == 2
    assert "BadFile: cannot read no.jsonl.gz: Not a gzipped file" in capsys.readouterr().err


def test_mistakes_of_users_exit_with_2(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert end(monkeypatch, "explain", "ap.py") == 2
    assert capsys.readouterr().err == "BadFile: there is no file ap.py\n  fix  did you mean 'app.py'? known: app.py\n"
    assert end(monkeypatch, "trace", "app.py", "nothing.json") == 2
    assert capsys.readouterr().err.startswith("BadFile: there is no file nothing.json\n")


def test_what_users_type_is_not_markup(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "odd.py").write_text("raise ValueError('[red]no[/red] [/]')\n")
    assert end(monkeypatch, "explain", "odd.py") == 2
    assert "ValueError: [red]no[/red] [/]" in capsys.readouterr().err


def test_our_own_mistakes_exit_with_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(target: str) -> None:
        raise RuntimeError("oops\nand more")

    monkeypatch.setattr("penstock.route.load.load", fail)
    assert end(monkeypatch, "explain", "app.py") == 1
    assert capsys.readouterr().err == (
        "penstock failed: RuntimeError: oops\n  fix  PENSTOCK_DEBUG=1 shows the traceback\n"
    )
    monkeypatch.setenv("PENSTOCK_DEBUG", "1")
    assert end(monkeypatch, "explain", "app.py") == 1
    assert "Traceback" in capsys.readouterr().err


def test_interrupt_exits_with_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(target: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("penstock.route.load.load", interrupt)
    assert end(monkeypatch, "explain", "app.py") == 130
    assert capsys.readouterr().err == "stopped\n"


def test_options_of_streams_need_a_stream(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert end(monkeypatch, "run", "app.py", "--once") == 2
    assert "--once is for streams" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["trace", "app.py", '{"id": 1}'], ["explain", "app.py"], ["diagram", "app.py"], ["--help"]]
)
def test_looking_does_not_import_spark(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom penstock.cli.main import main\n"
        f"sys.argv = ['penstock', *{arguments!r}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "assert 'pyspark' not in sys.modules and 'py4j' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=dict(os.environ))
