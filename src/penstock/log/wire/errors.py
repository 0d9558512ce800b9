"""Errors as numbers: what a server refuses, and which exception a client raises for it.

Numbers never change their meaning; new ones are added at the end.
"""

from __future__ import annotations

from enum import IntEnum

from penstock.errors import BadExpression, BadSchema, PenstockError, TypeMismatch, UnknownField
from penstock.log import errors


class Number(IntEnum):
    OK = 0
    MALFORMED = 1
    VERSION = 2
    TOKEN = 3
    UNKNOWN_TOPIC = 4
    UNKNOWN_PARTITION = 5
    BAD_NAME = 6
    TOPIC_EXISTS = 7
    OUT_OF_RANGE = 8
    DAMAGED = 9
    TOO_LARGE = 10
    FENCED = 11
    OUT_OF_SEQUENCE = 12
    NOT_STORED = 13
    CLOSED = 14
    BAD_EXPRESSION = 15
    TOO_MANY = 16
    INTERNAL = 17
    TOPIC_DELETED = 18


RETRIED = frozenset({Number.CLOSED, Number.TOO_MANY})
"""A request that was refused for these reasons may be sent again later, unchanged."""


class ServerError(PenstockError):
    """A server that failed for a reason of its own; its own output says more."""


class BadRequest(PenstockError):
    """A request that a server does not understand, or does not do."""


class WrongToken(PenstockError):
    """A server that wants a token, and got none or another one."""


class NoServer(PenstockError):
    """No log server answers at this address, or no longer."""


class TooMany(PenstockError):
    """More at once than a server takes."""


_CLASSES: tuple[tuple[type[PenstockError], Number], ...] = (
    (errors.TopicDeleted, Number.TOPIC_DELETED),
    (errors.UnknownTopic, Number.UNKNOWN_TOPIC),
    (errors.BadTopic, Number.BAD_NAME),
    (errors.OffsetOutOfRange, Number.OUT_OF_RANGE),
    (errors.BadFrame, Number.MALFORMED),
    (errors.BadSettings, Number.MALFORMED),
    (errors.Damaged, Number.DAMAGED),
    (errors.StaleProducer, Number.FENCED),
    (errors.WrongSequence, Number.OUT_OF_SEQUENCE),
    (errors.NotAcknowledged, Number.NOT_STORED),
    (errors.LogClosed, Number.CLOSED),
    (BadExpression, Number.BAD_EXPRESSION),
    (UnknownField, Number.BAD_EXPRESSION),
    (TypeMismatch, Number.BAD_EXPRESSION),
    (BadSchema, Number.BAD_EXPRESSION),
    (WrongToken, Number.TOKEN),
    (TooMany, Number.TOO_MANY),
    (BadRequest, Number.MALFORMED),
)
_RAISED: dict[int, type[PenstockError]] = {
    Number.VERSION: BadRequest, Number.MALFORMED: BadRequest, Number.TOO_LARGE: BadRequest
}  # fmt: skip
for _class, _number in _CLASSES:
    _RAISED.setdefault(_number, _class)


def number_of(error: BaseException) -> Number:
    return next((number for kind, number in _CLASSES if isinstance(error, kind)), Number.INTERNAL)


def error_of(number: int, what: str, fix: str = "") -> PenstockError:
    """The exception that stands for a number. One that this version does not know is a failure of the server."""
    return _RAISED.get(number, ServerError)(what, None, fix or None)
