"""Values of a YAML file that know their line, so that every error can name it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import yaml

from penstock.errors import BadFile, Origin, PenstockError, did_you_mean
from penstock.expr.nodes import Expr
from penstock.masking import is_secret
from penstock.yaml.reading import read_expression, read_function

_SCALARS = {"tag:yaml.org,2002:" + name for name in ("str", "int", "float", "bool", "null")}
_KINDS = {yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list", yaml.ScalarNode: "a single value"}


@dataclass(frozen=True, slots=True)
class Item:
    """A value of the file. `what` says in words what it is, for errors: "the source of route 'orders'"."""

    node: yaml.Node
    what: str
    file: str
    document: str = field(repr=False)

    @property
    def origin(self) -> Origin:
        line = self.node.start_mark.line
        return Origin.within(self.file, line + 1, self.document)

    def below(self, node: yaml.Node, what: str) -> Item:
        return Item(node, what, self.file, self.document)

    @contextmanager
    def located(self) -> Iterator[None]:
        """Errors of what happens inside point at this item, unless they point into the file already."""
        try:
            yield
        except PenstockError as error:
            known = isinstance(error.origin, Origin) and error.origin.file == self.file
            place = error.origin if isinstance(error.origin, str) else self.origin.text
            origin = error.origin if known else Origin(self.file, self.origin.line, place)
            raise type(error)(error.what, origin, error.fix) from None

    def wrong(self, expected: str, fix: str | None = None) -> BadFile:
        found = _KINDS.get(type(self.node), "something else")
        if isinstance(self.node, yaml.ScalarNode) and is_secret(self.what.partition(" of ")[0]):
            found, fix = "something else", fix or "write it in quotes"
        elif isinstance(self.node, yaml.ScalarNode):
            found = repr(self.node.value) if self.node.tag.endswith(":str") else self.node.value or "nothing"
            if fix is None and expected == "text" and self.node.value:
                fix = f'write it in quotes: "{self.node.value}"'
        return BadFile(f"{self.what} must be {expected}, found {found}", self.origin, fix)

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_list(self) -> bool:
        return isinstance(self.node, yaml.SequenceNode)

    def value(self) -> str | int | float | bool | None:
        """A scalar as Python has it; dates, binary data and the tags of other programs are refused."""
        if not isinstance(self.node, yaml.ScalarNode):
            raise self.wrong("a single value")
        if self.node.tag not in _SCALARS:
            if not self.node.tag.startswith("tag:yaml.org,2002:") or "python" in self.node.tag:
                raise BadFile(f"the tag {self.node.tag!r} is not read", self.origin, "write plain values")
            raise self.wrong("text")
        return _constructed(self.node)

    def text(self) -> str:
        value = self.value()
        if not isinstance(value, str) or not value:
            raise self.wrong("text")
        return value

    def integer(self) -> int:
        value = self.value()
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.wrong("a whole number")
        return value

    def boolean(self) -> bool:
        value = self.value()
        if not isinstance(value, bool):
            raise self.wrong("true or false")
        return value

    def entries(self) -> dict[str, Item]:
        if not isinstance(self.node, yaml.MappingNode):
            raise self.wrong("a mapping")
        found: dict[str, Item] = {}
        for key, value in self.node.value:
            name = self._key(self.below(key, f"a key of {self.what}"))
            if name in found:
                raise BadFile(f"{self.what} has the key {name!r} twice", self.below(key, "").origin)
            found[name] = self.below(value, f"{name!r} of {self.what}")
        return found

    @staticmethod
    def _key(item: Item) -> str:
        # YAML 1.1 reads the words on, off, yes and no as booleans; as keys they are what was typed.
        if item.value() is None or not isinstance(item.node, yaml.ScalarNode):
            raise item.wrong("text")
        return str(item.node.value)

    def listed(self) -> list[Item]:
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.wrong("a list")
        return [self.below(node, f"entry {index} of {self.what}") for index, node in enumerate(self.node.value, 1)]

    def duration(self) -> object:
        """Seconds or text; what it means is checked where it is used."""
        value = self.value()
        if value is None or isinstance(value, bool):
            raise self.wrong("a length of time", "write seconds, or text like '5 minutes'")
        return value

    def texts(self) -> list[str]:
        return [item.text() for item in self.listed()]

    def expression(self) -> Expr:
        return read_expression(self)

    def expressions(self) -> dict[str, object]:
        """The expressions of a mapping, by name."""
        return {name: item.expression() for name, item in self.entries().items()}

    def function(self) -> Callable[..., Any]:
        return read_function(self)

    def plain(self) -> object:
        """A nested value as Python has it; used where the content is somebody else's format (JSON Schema)."""
        if self.is_mapping:
            return {key: value.plain() for key, value in self.entries().items()}
        return [entry.plain() for entry in self.listed()] if self.is_list else self.value()

    def keys(self, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> Settings:
        """The entries of a mapping that has these keys and no others."""
        found, known = Settings(self.entries()), (*required, *optional)
        for name, item in found.items():
            if name not in known:
                raise BadFile(f"{self.what} has no key {name!r}", item.origin, did_you_mean(name, known))
        for name in required:
            if name not in found:
                raise BadFile(f"{self.what} needs {name!r}", self.origin)
        return found


class Settings(dict[str, Item]):
    """The settings of a step; some may be left out."""

    def text(self, name: str) -> str | None:
        return self[name].text() if name in self else None

    def texts(self, name: str) -> list[str]:
        return self[name].texts() if name in self else []

    def expression(self, name: str) -> Expr | None:
        return self[name].expression() if name in self else None

    def is_set(self, name: str) -> bool:
        return name in self and self[name].boolean()


def read(text: str, file: str, what: str) -> Item:
    """The one document of a YAML text."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise _unreadable(error, file, text) from None
    if node is None:
        raise BadFile("the file is empty", Origin(file, 1), "write at least app: and routes:")
    return Item(node, what, file, text)


def _unreadable(error: yaml.YAMLError, file: str, text: str) -> BadFile:
    mark = getattr(error, "problem_mark", None)
    line = mark.line if mark is not None else 0
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return BadFile(f"not YAML: {problem}", Origin.within(file, line + 1, text), "check quotes, colons and indentation")


def _constructed(node: yaml.ScalarNode) -> str | int | float | bool | None:
    loader = yaml.SafeLoader("")
    try:
        value: str | int | float | bool | None = loader.construct_object(node)
        return value
    finally:
        loader.dispose()
