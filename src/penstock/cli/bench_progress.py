"""How a benchmark shows how far it is: a bar at the bottom of a terminal, lines where there is none."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from penstock.bench.watch import State, duration
from penstock.cli.output import is_terminal, say

if TYPE_CHECKING:
    from rich.progress import Progress

_LINE_EVERY = 20


class BenchProgress:
    """`with BenchProgress() as progress: measure(..., Watch(progress.note, progress.show))`"""

    def __init__(self) -> None:
        self.bar: Progress | None = None

    def __enter__(self) -> BenchProgress:
        if is_terminal():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

            columns = (
                SpinnerColumn(), BarColumn(24), MofNCompleteColumn(),
                TextColumn("{task.fields[left]}", style="cyan"),
                TextColumn("{task.fields[now]}", markup=False),
                TextColumn("{task.fields[then]}", style="dim", markup=False),
            )  # fmt: skip
            self.bar = Progress(*columns, console=Console(stderr=True))
            self.bar.add_task("", total=None, left="", now="looking what is there", then="")
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    def note(self, text: str) -> None:
        """A line that stays."""
        if self.bar is None:
            say(text)
        else:
            from rich.text import Text

            self.bar.console.print(Text(text), soft_wrap=True)

    def show(self, state: State) -> None:
        left = "" if state.left is None else f"{duration(state.left)} left"
        if self.bar is not None:
            then = f"then {state.then}" if state.then else ""
            self.bar.update(
                self.bar.task_ids[0], completed=state.done, total=state.total, now=state.now, then=then, left=left
            )
        elif state.done % _LINE_EVERY == 0:
            say(f"{state.done} of {state.total} done{', about ' + left if left else ''}; now {state.now}")
