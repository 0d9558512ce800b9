"""Elements <-> fields of a schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lxml import etree

from penstock.errors import BadSchema
from penstock.formats.base import WrongValue
from penstock.formats.scalars import is_missing, parse_scalar, write_scalar
from penstock.schema import STRING, VARIANT, Array, Map, Scalar, Struct, Type

TEXT = "_VALUE"
_NIL = "{http://www.w3.org/2001/XMLSchema-instance}nil"
_NAME_START = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_STARTS = re.compile(f"[{_NAME_START}]")
_NOT_IN_NAMES = re.compile(f"[^{_NAME_START}0-9.\u00b7\u0300-\u036f\u203f-\u2040-]")
_NOT_IN_TEXT = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def check(kind: Type) -> None:
    match kind:
        case Struct(fields):
            for _, inner in fields:
                check(inner)
        case Array(element):
            if isinstance(element, Array):
                raise BadSchema(f"XML has no arrays of arrays: {kind}")
            check(element)
        case Map(value):
            check(value)
    if kind == VARIANT:
        raise BadSchema("XML has no VARIANT: its values have no types", fix="declare STRING, or a STRUCT")


def read_fields(element: etree._Element, kind: Struct, path: str = "") -> dict[str, Any]:
    return {name: _field(element, name, inner, f"{path}.{name}" if path else name) for name, inner in kind.fields}


def _field(element: etree._Element, name: str, kind: Type, path: str) -> Any:
    if name == TEXT and isinstance(kind, Scalar):
        text = _own_text(element)
        return parse_scalar(text, kind, path) if text.strip() else None
    if name.startswith("_") and isinstance(kind, Scalar):
        return next((parse_scalar(str(value), kind, path) for attribute, value in element.attrib.items()
                     if _local(attribute) == name[1:]), None)  # fmt: skip
    found = [child for child in _children(element) if _local(child.tag) == name]
    if isinstance(kind, Array):
        if not found:
            return None
        return [_value(child, kind.element, f"{path}[{index}]") for index, child in enumerate(found)]
    value = None
    for child in found:
        value = _value(child, kind, path)
    return value


def _value(element: etree._Element, kind: Type, path: str) -> Any:
    if element.get(_NIL) in ("true", "1"):
        return None
    match kind:
        case Struct():
            return read_fields(element, kind, path)
        case Map(value):
            return {_local(child.tag): _value(child, value, f"{path}.{_local(child.tag)}")
                    for child in _children(element)}  # fmt: skip
        case Scalar():
            text = "".join(map(str, element.itertext(etree.Element)))
            return parse_scalar(text, kind, path) if kind == STRING or text.strip() else None
    raise WrongValue(path, f"<{_local(element.tag)}>", kind)


def _children(element: etree._Element) -> Iterator[etree._Element]:
    return element.iterchildren(etree.Element)


def _own_text(element: etree._Element) -> str:
    """The text directly inside, without that of children."""
    return (element.text or "") + "".join(child.tail or "" for child in element)


def _local(name: Any) -> str:
    return str(etree.QName(name).localname)


def write_fields(tag: str, fields: Mapping[str, Any]) -> etree._Element:
    """Nulls are left out; characters that XML cannot hold are replaced."""
    element = etree.Element(_name(tag))
    for name, value in fields.items():
        if is_missing(value):
            continue
        if name == TEXT:
            element.text = _text(value)
        elif name.startswith("_") and len(name) > 1 and not isinstance(value, Mapping | list | tuple):
            element.set(_name(name[1:]), _text(value))
        else:
            for item in value if isinstance(value, list | tuple) else (value,):
                element.append(_write(name, item))
    return element


def _write(name: str, value: Any) -> etree._Element:
    if isinstance(value, Mapping):
        return write_fields(name, value)
    element = etree.Element(_name(name))
    if is_missing(value):
        element.set(_NIL, "true")
    else:
        element.text = _text(value)
    return element


def _name(name: str) -> str:
    safe = _NOT_IN_NAMES.sub("_", name)
    return safe if _STARTS.match(safe) else f"_{safe}"


def _text(value: Any) -> str:
    return _NOT_IN_TEXT.sub("\ufffd", write_scalar(value))
