"""Show how far a benchmark is: a bar at the bottom of a terminal, or lines where there is no terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from rich.text import Text

from penstock.bench.watch import State, duration
from penstock.cli.output import is_terminal, say

_LINE_EVERY = 20


class BenchProgress:
    """`with BenchProgress() as progress: measure(..., Watch(progress.note, progress.show))`"""

    def __init__(self) -> None:
        self.bar = _Bar() if is_terminal() else None

    def __enter__(self) -> BenchProgress:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *failed: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def note(self, text: str) -> None:
        """A line that stays."""
        if self.bar is None:
            say(text)
        else:
            self.bar.console.print(Text(text), soft_wrap=True)

    def show(self, state: State) -> None:
        left = "" if state.left is None else f"about {duration(state.left)} left"
        if self.bar is not None:
            self.bar.show(state, left)
        elif state.done % _LINE_EVERY == 0:
            say(f"{state.done} of {state.total} done{', ' + left if left else ''}; now {state.now}")


class _Bar(Progress):
    """A bar with two lines below it: what is being done, and what comes next."""

    def __init__(self) -> None:
        self.now, self.then = "looking what is there", ""
        columns = SpinnerColumn(), BarColumn(32), MofNCompleteColumn(), TextColumn("{task.fields[left]}", style="cyan")
        super().__init__(*columns, console=Console(stderr=True), transient=True)
        self.task = self.add_task("", total=None, left="")

    def show(self, state: State, left: str) -> None:
        self.now, self.then = state.now, state.then
        self.update(self.task, completed=state.done, total=state.total, left=left)

    def get_renderables(self) -> Iterator[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        yield Text(f"  now   {self.now}", no_wrap=True, overflow="ellipsis")
        yield Text(f"  then  {self.then}" if self.then else "", no_wrap=True, overflow="ellipsis", style="dim")
