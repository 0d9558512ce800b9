"""Everything that README, ARCHITECTURE and docs show is run, and their tables are compared with the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from penstock.endpoints.yaml import _KEYS
from penstock.expr.evaluate import Scope, evaluate
from penstock.expr.functions import FUNCTIONS, Signature
from penstock.expr.text import parse
from penstock.route.route import Route
from penstock.spark.cluster import stop
from penstock.spark.java import find_java, launch_home
from tests.docs.pages import PAGES, ROOT, RUNS, SHOWN_ONLY, Page, blocks, commands, is_same

_ON_SPARK = re.compile(r"^\$ penstock (run|doctor)(?!.* --master )|run_batch|engine=\"(spark|stream)\"", re.MULTILINE)


def page_name(page: Path) -> str:
    return page.name


RUN = [pytest.param(page, id=page_name(page), marks=[pytest.mark.long] * (page.name == "cluster.md")) for page in PAGES]
"""A page that starts a cluster again and again takes a minute."""


@pytest.mark.parametrize("page", RUN)
def test_every_example_of_the_page_runs_as_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    found = blocks(page.read_text(encoding="utf-8"))
    if any(_ON_SPARK.search(block.text) for block in found if block.language in RUNS):
        request.getfixturevalue("spark")
    monkeypatch.setenv("COLUMNS", "200")
    if any("$ spark-submit" in block.text for block in found):
        monkeypatch.setenv("JAVA_HOME", str(launch_home(find_java())))
    try:
        Page(page.name, tmp_path).run(found)
    finally:
        for file in tmp_path.rglob("master.pid"):
            stop(file.parent)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_block_is_run_or_marked_as_not_run(page: Path) -> None:
    found = blocks(page.read_text(encoding="utf-8"))
    known = (*SHOWN_ONLY, *RUNS)
    assert [(block.line, block.language) for block in found if not block.file and block.language not in known] == []
    for block in found:
        if block.language == "console":
            assert all(command for command, _ in commands(block.text)), f"{page.name}:{block.line} has no command"


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, heading = target.partition("#")
        if "://" in path:
            continue
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page.name} links to {target}"
        if heading:
            assert heading in _anchors(file), f"{page.name} links to {target}"


def _anchors(file: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_of_docs_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES if page.parent.name == "docs" and page.name != "index.md"
            and f"]({page.name})" not in index] == []  # fmt: skip


def table(page: str, first: str) -> list[list[str]]:
    """The cells of the table whose header begins with `first`; `\\|` is a bar inside a cell."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {first} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows


def takes(signature: Signature) -> str:
    kinds = [" or ".join(map(str, kind)) if isinstance(kind, tuple) else str(kind).replace("ARRAY<any>", "ARRAY")
             for kind in signature.arguments]  # fmt: skip
    required = len(kinds) - signature.optional
    words = [kind if number < required else f"[{kind}]" for number, kind in enumerate(kinds)]
    return ", ".join([*words, *(["..."] if signature.repeats else [])])


def test_the_table_of_functions_is_the_code() -> None:
    shown = [row[:3] for row in table("docs/expressions.md", "function")]
    known = ((name, takes(function), function.result) for name, function in FUNCTIONS.items())
    assert shown == [[f"`{name}`", f"`{taken}`", f"`{given}`"] for name, taken, given in known]


@pytest.mark.parametrize("row", table("docs/expressions.md", "function"), ids=lambda row: row[0].strip("`"))
def test_the_examples_in_the_table_of_functions_are_true(row: list[str]) -> None:
    for example in re.findall(r"`([^`]+)`", row[3]):
        assert evaluate(parse(example), Scope({})) is True, example


def test_the_table_of_patterns_is_the_code() -> None:
    nodes = {node.verb: node for node in Route.patterns()}
    shown = {}
    for pattern, verbs, *place in table("docs/patterns.md", "pattern"):
        for verb in re.findall(r"`\.?(\w+)", verbs):
            shown[{"keep": "content_filter", "drop": "content_filter"}.get(verb, verb)] = [pattern, *place]
    assert shown == {verb: [node.pattern, node.template, node.channels, node.messages] for verb, node in nodes.items()}


def test_the_page_of_patterns_shows_every_verb() -> None:
    text = (ROOT / "docs" / "patterns.md").read_text(encoding="utf-8")
    words = [word for node in Route.patterns() for word in node.readers()]
    assert [word for word in words if f".{word}(" not in text] == []


def test_the_page_of_endpoints_says_what_every_sink_guarantees() -> None:
    from penstock import Console, Files, KafkaTopic, Log, Memory, Parquet, Postgres, Table, Void

    text = (ROOT / "docs" / "endpoints.md").read_text(encoding="utf-8")
    assert [kind for kind in _KEYS if f"`{kind}`" not in text] == []
    sinks = (Console, Files, KafkaTopic, Log, Memory, Parquet, Postgres, Table, Void)
    assert [sink.__name__ for sink in sinks if sink.guarantee not in text] == []


def test_the_table_of_variables_is_the_code() -> None:
    used = {name for file in (ROOT / "src" / "penstock").rglob("*.py")
            for name in re.findall(r"PENSTOCK_[A-Z_]+", file.read_text(encoding="utf-8"))}  # fmt: skip
    assert {row[0].strip("`").partition("=")[0] for row in table("docs/running.md", "variable")} >= used


def imports(file: Path) -> set[str]:
    """What a file imports when it is loaded."""
    found: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            found |= {node.module or ""} | {f"{node.module}.{name.name}" for name in node.names}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return found


def test_imports_point_one_way() -> None:
    rows = [re.findall(r"`([\w.]+)/?`", row[0]) for row in table("ARCHITECTURE.md", "folder")]
    level = {name.removesuffix(".py"): number for number, names in enumerate(rows) for name in names}
    wrong = []
    for file in sorted((ROOT / "src" / "penstock").rglob("*.py")):
        here = file.relative_to(ROOT / "src" / "penstock").parts[0].removesuffix(".py")
        if here not in level:
            continue
        for name in imports(file):
            target = name.split(".")[1] if name.startswith("penstock.") else ""
            upwards = level.get(target, 0) > level[here]
            if upwards or (name.split(".")[0] in ("pyspark", "py4j") and here not in ("spark", "bench")):
                wrong.append(f"{here} imports {name} in {file.name}")
    assert wrong == []


def test_output_is_compared_line_by_line() -> None:
    assert is_same("a\n...\nc", "a\nb\nb\nc")
    assert is_same("a\n...\nc", "a\nc")
    assert is_same("a\n...", "a\nb\nc")
    assert is_same("x: 1 batch in 0.3 s, 7 messages/s", "x: 1 batch in 12.0 s, 1,000 messages/s")
    assert is_same("r.to  1    0.30 s", "r.to  1  1,234.50 s")
    assert is_same("a ... c", "a b c")
    assert not is_same("a\nc", "a\nb\nc")
    assert not is_same("a", "a\nb")
    assert not is_same("", "a")
