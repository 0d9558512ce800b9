"""Error budgets: how many failures, or what share of them, may be among the messages of a batch or of a split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from penstock.errors import BadRoute, BudgetExceeded, counted

Budget = int | float
ON_EXCEPTION = "  | stops on exception"


def check_budget(value: object) -> Budget | None:
    """A whole number of failures, or a share between 0.0 and 1.0; none at all allows everything."""
    if value is None or (type(value) is int and value >= 0) or (type(value) is float and 0 <= value <= 1):
        return value
    raise BadRoute(f"error_budget={value!r} is no budget",
                   fix="write error_budget=10 for ten failures, or 0.01 for one in a hundred")  # fmt: skip


def check_stop(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise BadRoute(f"stop_on_exception={value!r} is neither true nor false", fix="write stop_on_exception=True")


def is_exceeded(budget: Budget, failed: int, messages: int) -> bool:
    return failed > (budget * messages if isinstance(budget, float) else budget)


def budget_text(budget: Budget) -> str:
    return f"{budget * 100:g}%" if isinstance(budget, float) else str(budget)


def budget_detail(budget: Budget | None) -> str:
    """How the settings of a step end that has a budget."""
    return f"  | error budget {budget_text(budget)}" if budget is not None else ""


def check_batch(app: str, budget: Budget | None, failed: int, messages: int, errors: Mapping[str, int]) -> None:
    """Raise if a batch has more dead letters than its app allows; `errors` counts them by what and where.

    A part or a copy that dies is a dead letter like any other.
    """
    if budget is None or not is_exceeded(budget, failed, messages):
        return
    most = ", ".join(f"{count:,} {error}" for error, count in Counter(errors).most_common(3))
    more = f": {most}" + (", and others" if len(errors) > 3 else "") if most else ""
    allowed = f"the error budget of app {app!r} is {budget_text(budget)}"
    raise BudgetExceeded(
        f"{counted(failed, 'dead letter')} from {counted(messages, 'message')}, and {allowed}{more}",
        fix="nothing of the batch was published: mend the cause and run it again, or raise error_budget",
    )


def messages_of(received: int, held: int) -> int:
    """The messages of a batch, of which failures are a share: those that came, and those that had waited before."""
    return received + max(-held, 0)
