"""Imports point one way, as the table of folders in ARCHITECTURE.md has it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

HOME = Path(__file__).parents[1]
PACKAGE = HOME / "src" / "penstock"
_ROW = re.compile(r"^\| (?P<names>`[^|]+) \| [^|]* \| (?P<may>[^|]+) \|$")
_NAME = re.compile(r"`([a-z_]+)(?:/|\.py)?`")
ALL = "all of the above"
WITH_PYSPARK = {"spark", "bench"}


def table() -> dict[str, tuple[set[str], set[str]]]:
    """By folder or file: what it may import, and what only inside functions."""
    text = (HOME / "ARCHITECTURE.md").read_text()
    rows = [found for line in text.partition("## A plan")[0].splitlines() if (found := _ROW.match(line))]
    vocabulary = set(_NAME.findall(rows[0]["names"]))
    above: set[str] = set(vocabulary)
    found: dict[str, tuple[set[str], set[str]]] = {name: (vocabulary, set()) for name in vocabulary}
    for row in rows[1:]:
        always, _, late = row["may"].partition(";")
        names = set(_NAME.findall(row["names"]))
        may = set(above) if ALL in always else vocabulary | set(_NAME.findall(always))
        for name in names:
            found[name] = may | names, set(_NAME.findall(late))
        above |= names
    return found


def imports(file: Path) -> Iterator[tuple[str, bool, int]]:
    """Folders and files of the package, and pyspark: by name, whether they are imported at once, and the line."""
    tree = ast.parse(file.read_text())
    inner = {id(part) for node in ast.walk(tree) if _waits(node) for part in ast.walk(node)}
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if node.module != "penstock" else [f"penstock.{name.name}" for name in node.names]
        elif isinstance(node, ast.Import):
            names = [name.name for name in node.names]
        for name in names:
            first, _, rest = name.partition(".")
            if first == "pyspark" or (first == "penstock" and rest):
                yield rest.split(".")[0] if first == "penstock" else first, id(node) not in inner, node.lineno


def _waits(node: ast.AST) -> bool:
    """Whether what is inside is not imported at once."""
    return isinstance(node, ast.FunctionDef) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))


def place(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


FILES = [file for file in sorted(PACKAGE.rglob("*.py")) if file != PACKAGE / "__init__.py"]


def test_every_folder_and_file_has_a_row() -> None:
    assert {place(file) for file in FILES} == table().keys()


@pytest.mark.parametrize("folder", sorted({place(file) for file in FILES}))
def test_a_folder_imports_what_the_table_allows(folder: str) -> None:
    found = table()
    always, late = found[folder]
    wrong = [
        f"{file.relative_to(HOME)}:{line} imports {name}"
        for file in FILES if place(file) == folder
        for name, at_once, line in imports(file)
        if name in found and name not in always and (at_once or name not in late)
    ]  # fmt: skip
    assert wrong == []


def test_only_spark_and_the_benchmarks_import_pyspark_at_once() -> None:
    eager = {place(file) for file in FILES for name, at_once, _ in imports(file) if name == "pyspark" and at_once}
    assert eager <= WITH_PYSPARK
