"""What a pattern adds to `Route`: the methods that people type."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Self

from penstock.patterns.node import Node


class Verb:
    """A base of `Route`, with a method for every way to write the steps that it `makes`.

    A route with a pattern of one's own is `class OurRoute(StampVerb, Route)`.
    """

    makes: ClassVar[tuple[type[Node], ...]] = ()

    def then(self, step: Callable[[], Node] | Node, name: str | None = None) -> Self:
        """This route with one more step. An error in making it says in which route, and on which line."""
        raise NotImplementedError
