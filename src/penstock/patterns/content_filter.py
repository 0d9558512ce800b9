"""Content filter: keep some fields of the body, or drop some."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from penstock.errors import BadRoute
from penstock.patterns.drawing import arrow, box, square
from penstock.patterns.node import EXPRESSION, Node, Paths
from penstock.patterns.verb import Verb
from penstock.schema import Path, Struct, Type, project, quote_name, resolve

if TYPE_CHECKING:
    from penstock.yaml.item import Item


@dataclass(frozen=True, slots=True)
class ContentFilter(Node):
    paths: tuple[Path, ...]
    drops: bool = False

    verb: ClassVar[str] = "content_filter"
    pattern: ClassVar[str] = "content filter"
    template: ClassVar[str] = EXPRESSION
    icon: ClassVar[str] = (
        square(11, 13, 10) + box(11, 23, 10, 8, filled=True) + arrow((25, 22), (36, 22)) + square(42, 17, 10)
    )
    rewrites: ClassVar[bool] = True

    def output(self, body: Struct) -> Struct:
        for path in self.paths:
            resolve(body, path)
        kept = _without(body, self.paths) if self.drops else project(body, self.paths)
        if not kept.fields:
            raise BadRoute("the content filter leaves nothing of the body")
        return kept

    def requires(self, wanted: Paths, body: Struct) -> Paths:
        return frozenset(_leaves(self.output(body))) if () in wanted else wanted

    def detail(self) -> str:
        names = ", ".join(".".join(quote_name(str(part)) for part in path) for path in self.paths)
        return f"{'drop' if self.drops else 'keep'} {names}"

    @classmethod
    def readers(cls) -> Mapping[str, Callable[[Item], Node]]:
        return {
            "keep": lambda item: content_filter(keep=item.texts()),
            "drop": lambda item: content_filter(drop=item.texts()),
        }

    @property
    def word(self) -> str:
        return "drop" if self.drops else "keep"

    def write(self) -> object:
        return [".".join(map(str, path)) for path in self.paths]


def _without(body: Struct, paths: tuple[Path, ...]) -> Struct:
    kept: list[tuple[str, Type]] = []
    for name, kind in body.fields:
        below = tuple(path[1:] for path in paths if path[0] == name)
        if () in below:
            continue
        kept.append((name, _without(kind, below) if below and isinstance(kind, Struct) else kind))
    return Struct(tuple(kept))


def _leaves(body: Struct, prefix: Path = ()) -> list[Path]:
    found: list[Path] = []
    for name, kind in body.fields:
        path = (*prefix, name)
        found.extend(_leaves(kind, path) if isinstance(kind, Struct) and kind.fields else [path])
    return found


def content_filter(keep: list[str] | tuple[str, ...] = (), drop: list[str] | tuple[str, ...] = ()) -> ContentFilter:
    if bool(keep) == bool(drop):
        raise BadRoute("a content filter either keeps fields or drops fields", fix='write keep=["id", "owner.name"]')
    paths = tuple(tuple(name.split(".")) for name in (keep or drop))
    return ContentFilter(paths, drops=bool(drop))


class ContentFilterVerb(Verb):
    makes: ClassVar[tuple[type[Node], ...]] = (ContentFilter,)

    def keep(self, *fields: str, name: str | None = None) -> Self:
        """Content filter: keep only these fields."""
        return self.then(lambda: content_filter(keep=fields), name)

    def drop(self, *fields: str, name: str | None = None) -> Self:
        """Content filter: drop these fields."""
        return self.then(lambda: content_filter(drop=fields), name)
