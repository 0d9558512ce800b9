"""The same messages as XML and CSV, from their JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import polars as pl

_BYTES = 8_000_000


def _frames(chunks: Iterable[bytes]) -> Iterator[pl.DataFrame]:
    """The messages of the lines, many at a time."""
    held: list[bytes] = []
    for chunk in chunks:
        held.append(chunk)
        if len(held) * len(chunk) > _BYTES:
            yield pl.read_ndjson(b"".join(held), infer_schema_length=None)
            held.clear()
    if held:
        yield pl.read_ndjson(b"".join(held), infer_schema_length=None)


def as_xml(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """A document `<messages>` with one `<message>` per message; an array is a repeated element."""
    yield b"<messages>\n"
    for frame in _frames(chunks):
        message = _element("message", pl.struct(pl.all()), pl.Struct(frame.schema))
        yield "\n".join([*frame.select(message).to_series().to_list(), ""]).encode()
    yield b"</messages>\n"


def _element(name: str, value: pl.Expr, kind: object) -> pl.Expr:
    if isinstance(kind, pl.List):
        return value.list.eval(_element(name, pl.element(), kind.inner)).list.join("")
    if isinstance(kind, pl.Struct):
        inside = pl.concat_str([_element(one.name, value.struct.field(one.name), one.dtype) for one in kind.fields])
    else:
        inside = value.cast(pl.String).str.replace_many({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
    return pl.concat_str([pl.lit(f"<{name}>"), inside, pl.lit(f"</{name}>")])


def as_csv(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """A header and one line per message; only for flat messages that all have the same fields."""
    for number, frame in enumerate(_frames(chunks)):
        yield frame.write_csv(include_header=number == 0).encode()


VARIANTS: dict[str, tuple[frozenset[str], Callable[[Iterable[bytes]], Iterator[bytes]]]] = {
    "xml": (frozenset(("orders", "customers", "nations", "regions", "multi", "nested")), as_xml),
    "csv": (frozenset(("orders", "customers", "nations", "regions")), as_csv),
}
"""For each variant, the models it is made of and how."""
