"""The blocks of a Markdown page, and how each kind is run.

| block | what happens |
|---|---|
| `python` | runs, in one namespace per page; what it prints must stand in an `output` block right after it |
| `output` | compared with what the `python` block before it printed |
| `console` | every `$ ` line runs; the lines under it, if there are any, are compared with what it wrote |
| `python file=x`, `yaml file=x`, `jsonl file=x` ... | written to the file `x`, for the commands that follow |
| `text`, `mermaid` | shown only |

In expected output `...` stands for anything: alone on a line for any lines, within a line for any characters.
Times, rates and the names of runs are not compared.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md"))]
SHOWN_ONLY = ("text", "mermaid")
RUNS = ("python", "output", "console")
_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>.*)$")
_SHELL = re.compile(r"[|<>&;*$`]")
_NOT_COMPARED = (
    (re.compile(r"\d{8}T\d{6}-[0-9a-f]{8}"), "RUN"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z?"), "TIME"),
    (re.compile(r" *\b[\d,.]+( ?s| ms| GB)\b"), r" #\1"),
    (re.compile(r"\b[\d,.]+ messages/s"), "# messages/s"),
    (re.compile(r" +(\[100%\])"), r" \1"),
)


@dataclass(frozen=True)
class Block:
    line: int
    language: str
    file: str
    text: str


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    lines = text.split("\n")
    start: int | None = None
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if fence is None:
            continue
        if start is None:
            start, info = number, fence["info"].split()
        else:
            inside = "\n".join(lines[start + 1 : number]) + "\n"
            file = next((word.removeprefix("file=") for word in info[1:] if word.startswith("file=")), "")
            found.append(Block(start + 1, info[0] if info else "", file, inside))
            start = None
    assert start is None, f"the block of line {start} is not closed"
    return found


def commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with the output shown under it."""
    command, shown = "", [""]
    for line in text.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, "\n".join(shown)
            command, shown = line[2:], []
        else:
            shown.append(line)
    yield command, "\n".join(shown)


def is_same(shown: str, found: str) -> bool:
    """Whether the output is the one that the page shows, but for `...` and what differs from run to run."""
    return _same_lines(_plain(shown).split("\n"), _plain(found).split("\n"))


def _same_lines(shown: list[str], found: list[str]) -> bool:
    if not shown:
        return not found
    if shown[0] == "...":
        return any(_same_lines(shown[1:], found[skipped:]) for skipped in range(len(found) + 1))
    line = re.escape(shown[0]).replace(re.escape("..."), ".*")
    return bool(found) and re.fullmatch(line, found[0]) is not None and _same_lines(shown[1:], found[1:])


def _plain(text: str) -> str:
    for pattern, instead in _NOT_COMPARED:
        text = pattern.sub(instead, text)
    return "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))


@dataclass
class Page:
    """One page while it is run: the directory it works in, and the names its Python blocks have made."""

    name: str
    here: Path
    names: dict[str, object] = field(default_factory=lambda: {"__name__": "__main__"})
    status: int = 0

    def run(self, found: list[Block]) -> None:
        for index, block in enumerate(found):
            if block.file:
                path = self.here / block.file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text, encoding="utf-8")
            elif block.language == "python":
                after = found[index + 1] if index + 1 < len(found) else None
                self._python(block, after.text if after is not None and after.language == "output" else "")
            elif block.language == "console":
                self._console(block)

    def _python(self, block: Block, shown: str) -> None:
        file = f"{Path(self.name).stem.lower()}.py"
        linecache.cache[file] = (len(block.text), None, block.text.splitlines(keepends=True), file)
        out = io.StringIO()
        with contextlib.chdir(self.here), contextlib.redirect_stdout(out):
            exec(compile(block.text, file, "exec", dont_inherit=True), self.names)
        self._compare(block, "this block", shown, out.getvalue())

    def _console(self, block: Block) -> None:
        for command, shown in commands(block.text):
            self.status, found = self._command(command)
            if shown:
                self._compare(block, command, shown, found)
            else:
                assert self.status == 0, f"{self.name}:{block.line}: {command} ended with {self.status}:\n{found}"

    def _command(self, command: str) -> tuple[int, str]:
        words = command.split("#")[0].split()
        if words[0] == "cd":
            self.here = (self.here / words[1]).resolve()
            return 0, ""
        if command == "echo $?":
            return 0, str(self.status)
        if words[0] == "penstock" and not _SHELL.search(command.split("#")[0]):
            return penstock(command, self.here)
        environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(command, shell=True, cwd=self.here, env=environment, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def _compare(self, block: Block, what: str, shown: str, found: str) -> None:
        said = f"{self.name}:{block.line}: {what} does not give what the page shows, but\n\n{found}"
        assert is_same(shown, found), said


def penstock(command: str, here: Path) -> tuple[int, str]:
    """The command line in this process, on the Spark session that is there: starting Java again takes seconds."""
    import shlex

    from penstock.cli.main import main

    linecache.clearcache()
    out = io.StringIO()
    before = sys.argv, list(sys.path), set(sys.modules)
    sys.argv = shlex.split(command, comments=True)
    try:
        with contextlib.chdir(here), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            main()
    except SystemExit as end:
        return int(end.code or 0), out.getvalue()
    finally:
        sys.argv, sys.path[:] = before[0], before[1]
        for name in set(sys.modules) - before[2]:
            if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(here)):
                del sys.modules[name]
    return 0, out.getvalue()
