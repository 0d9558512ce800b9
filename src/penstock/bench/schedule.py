"""What a run of the benchmark measures: its settings, and the cells that they make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from penstock.bench.spelling import COMPACT, MIXED, SPACED
from penstock.bench.workload import CARS, WORKLOADS, Workload

USERS_WORKLOADS = ("RT-1-A", "RT-1-B", "SP-B")
BATCH_WORKLOADS = ("RT-1-A", "RT-1-B")
SIZE_WORKLOADS = ("RT-1-A", "RT-1-B", "BL")
_CUSTOMER_BYTES = 250
_CUSTOMERS_AT_FIRST = 4
_SWEPT_BYTES = 128_000_000
_BATCHES = 32
_ORDERS_PER_SCALE = 1_500_000
_HEAVY = {"multi": 16, "nested": 4, "fields": 4, "entries": 4, "duplicates": 2}


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """A workload with its scale factors; `users` and `batch` are numbers (2^omega, 2^beta), `size` is eta.

    Without users a peer has as many producers of messages as cores; without a batch it hands over what it likes.
    `spelling` is how the messages are written as JSON.
    """

    workload: str
    users: int | None = None
    batch: int | None = None
    size: int | None = None
    cores: int = 2
    spelling: str = SPACED

    def __str__(self) -> str:
        return self.described()

    def described(self, with_cores: bool = True) -> str:
        factors = [
            counted(self.users, "user") if self.users is not None else "",
            f"batches of {self.batch:,}" if self.batch is not None else "",
            f"size {self.size}" if self.size is not None else "",
            counted(self.cores, "core") if with_cores else "",
            "" if self.spelling == SPACED else f"{self.spelling} JSON",
        ]
        return " ".join(filter(None, [self.workload, ", ".join(filter(None, factors))]))

    @property
    def factors(self) -> frozenset[str]:
        """The scale factors that it has."""
        return frozenset(name for name in ("users", "batch", "size") if getattr(self, name) is not None)

    @property
    def model(self) -> str:
        return WORKLOADS[self.workload].model if self.size is None else f"scaled-{self.size}"


def counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


@dataclass(frozen=True, slots=True)
class Settings:
    """What `penstock bench run` was asked for; `users` and `batch` are the exponents omega and beta.

    `swept` says whether the workloads were chosen by hand: then the scale factors go to these, otherwise to those of
    the papers. A quick run has one process per peer for all its cells, and ends after `budget` seconds.
    """

    workloads: tuple[str, ...]
    peers: tuple[str, ...]
    users: tuple[int, ...] = ()
    batch: tuple[int, ...] = ()
    size: tuple[int, ...] = ()
    cores: tuple[int, ...] = (2,)
    spellings: tuple[str, ...] = (SPACED,)
    forks: int = 3
    warmup: int = 4
    warmup_seconds: float = 10.0
    iterations: int = 5
    messages: int = 1_000_000
    checked: int = 2_000
    limit: float = 600.0
    swept: bool = False
    quick: bool = False
    budget: float | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Settings:
        values: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in stored.items()}
        return cls(**{"spellings": (COMPACT,), **values})  # a run that says nothing of it had no other


FULL = Settings((), (), users=tuple(range(7)), batch=tuple(range(0, 21, 2)), size=(*range(1, 15), 20))
QUICK = Settings(
    (), (), users=(0, 1, 2), batch=(4, 12), size=(1, 4, 7, 10), forks=1, warmup=1, warmup_seconds=0.0, iterations=2,
    messages=8_000, checked=200, limit=60.0, quick=True, budget=285.0,
)  # fmt: skip


def schedule(settings: Settings) -> tuple[Cell, ...]:
    """Every cell once: the plain workloads first, in all spellings, then users, batches and sizes."""
    return tuple(dict.fromkeys(cell for cores in settings.cores for cell in _cells(settings, cores)))


def _cells(settings: Settings, cores: int) -> Iterator[Cell]:
    plain = [Cell(name, cores=cores, spelling=settings.spellings[0]) for name in settings.workloads]
    for cell in plain:
        yield from (replace(cell, spelling=spelling) for spelling in settings.spellings)
    for omega in settings.users:
        for cell in _scaled(plain, settings, USERS_WORKLOADS):
            yield replace(cell, users=2**omega)
    for beta in settings.batch:
        for cell in _scaled(plain, settings, BATCH_WORKLOADS):
            yield replace(cell, batch=2**beta)
    for eta in settings.size:
        for cell in _scaled(plain, settings, SIZE_WORKLOADS):
            if WORKLOADS[cell.workload].model == "orders":
                yield replace(cell, size=eta)


def _scaled(plain: Iterable[Cell], settings: Settings, chosen: tuple[str, ...]) -> Iterator[Cell]:
    names = chosen[:1] if settings.quick else chosen
    for cell in plain:
        if settings.swept or cell.workload in names:
            yield cell


@dataclass(frozen=True, slots=True)
class Amount:
    """How many messages of a model are asked for, and the TPC-H scale factor that has enough of them."""

    model: str
    messages: int
    scale: float = field(compare=False)
    spelling: str = SPACED


def amount(cell: Cell, settings: Settings, one_by_one: bool) -> Amount:
    """The messages for a cell, counted as `models` does: in orders where the model is made of orders.

    Heavy models get fewer, so that the bytes are about the same, and so do workloads that handle each message many
    times; engines with a fixed cost per batch get fewer batches.
    """
    workload = WORKLOADS[cell.workload]
    messages = settings.messages
    if cell.size is not None:
        each = _CUSTOMERS_AT_FIRST * 2 ** (cell.size - 1) * _CUSTOMER_BYTES
        messages = min(messages, max(1, _SWEPT_BYTES * messages // FULL.messages // each))
    else:
        messages = max(workload.fewest, messages // weight(workload))
    messages = max(workload.fewest, messages // workload.work)
    if cell.batch is not None and not one_by_one:
        messages = min(messages, cell.batch * _BATCHES)
    return _amount(cell.model, messages, cell.spelling)


def checked_amount(workload: Workload, settings: Settings) -> Amount:
    """The few messages that answers are checked on: in both spellings, one line so, the next so."""
    return _amount(workload.model, max(workload.fewest, settings.checked // weight(workload)), MIXED)


def table_amount(table: str, model: Amount) -> Amount:
    """A table in memory is whole: the customers of the scale factor."""
    return Amount(table, int(model.scale * _ORDERS_PER_SCALE / 10), model.scale, model.spelling)


def weight(workload: Workload) -> int:
    """How many orders, about, weigh as much as one that the model is asked for."""
    return _HEAVY.get(workload.model, 1)


def _amount(model: str, messages: int, spelling: str) -> Amount:
    scale = next((s for s in (0.01, 0.1, 1.0) if messages <= s * _ORDERS_PER_SCALE), 10.0)
    return Amount(model, messages, scale, spelling)


def default_workloads(quick: bool) -> tuple[str, ...]:
    """All of them; a quick run takes one of the connected cars."""
    return tuple(
        name for name, workload in WORKLOADS.items()
        if not quick or workload.family != CARS or name == "cars-normal"
    )  # fmt: skip
