"""PostgreSQL: messages as rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from penstock.delivery import IN_ORDER
from penstock.endpoints.base import Sink
from penstock.endpoints.files import APPEND
from penstock.endpoints.variables import VARIABLE, filled
from penstock.errors import BadEndpoint
from penstock.masking import SECRETS, masked

UPSERT = "upsert"
LONGEST_NAME = 63
"""The bytes of a name that PostgreSQL keeps; it cuts off the rest."""



@dataclass(frozen=True, slots=True)
class Postgres(Sink):
    """A table on a PostgreSQL server: the body's fields are columns, with what is known about the message beside them.

    `url` is like `postgresql://user:${PASSWORD}@host/database`; `${NAME}` is an environment variable. The table,
    `orders` or `schema.orders`, is made if it is not there. With `mode="upsert"` a row replaces the one that has the
    same `key`.
    """

    url: str = field(repr=False)
    table: str
    mode: str = APPEND
    key: Sequence[str] = ()

    kind: ClassVar[str] = "postgres"
    guarantee: ClassVar[str] = "rows and the number of the batch are one transaction"
    delivery: ClassVar[str] = IN_ORDER
    columns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", (self.key,) if isinstance(self.key, str) else tuple(self.key))
        parts = self.table.split(".")
        if len(parts) > 2 or not all(part and '"' not in part and fits(part) for part in parts):
            raise BadEndpoint(f"{self.table!r} is not a table name", fix="write 'table' or 'schema.table'")
        if not self.url:
            raise BadEndpoint("a PostgreSQL sink needs a url", fix="write postgresql://user@host/database")
        if self.mode not in (APPEND, UPSERT):
            raise BadEndpoint(f"mode={self.mode!r} is not a mode", fix="write mode='append' or mode='upsert'")
        if (self.mode == UPSERT) != bool(self.key):
            what = "without a key" if self.mode == UPSERT else "with a key"
            raise BadEndpoint(f"mode={self.mode!r} {what}", fix="give both mode='upsert' and key=[...], or neither")

    @property
    def address(self) -> str:
        """The url as it may be shown."""
        return masked(self.url)

    @property
    def has_secret(self) -> bool:
        """A password is written out in the url, not named as a variable."""
        return any(VARIABLE.sub("", found.group(2)) for pattern in SECRETS for found in pattern.finditer(self.url))

    def full_url(self) -> str:
        """The url with the variables' values: never shown."""
        return filled(self.url, f"the url of table {self.table!r} names")

    def hide(self, text: str) -> str:
        """The text without this sink's password."""
        whole = self.full_url()
        hidden = text.replace(whole, masked(whole))
        for found in (found for pattern in SECRETS for found in pattern.finditer(whole) if found.group(2)):
            hidden = hidden.replace(found.group(2), "***")
        return masked(hidden)

    def __str__(self) -> str:
        return f"postgres {self.table} at {self.address}"


def fits(name: str) -> bool:
    return len(name.encode()) <= LONGEST_NAME and "\0" not in name
