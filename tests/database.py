"""What tests ask a PostgreSQL server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Database:
    url: str

    def run(self, *statements: str) -> list[dict[str, Any]]:
        """The rows of the last statement."""
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(self.url, autocommit=True) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return [] if cursor.description is None else cursor.fetch_arrow_table().to_pylist()

    def rows(self, table: str, columns: str = "*") -> list[dict[str, Any]]:
        """What is in a table, in its order."""
        return self.run(f"SELECT {columns} FROM {table} ORDER BY _position")
