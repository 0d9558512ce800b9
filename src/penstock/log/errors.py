"""The errors of the message log."""

from __future__ import annotations

from penstock.errors import PenstockError


class LogError(PenstockError):
    """The base of the errors of the message log."""


class BadFrame(LogError):
    """Bytes that are no frame, or messages that do not make one."""


class BadSettings(LogError):
    """Settings of a log that cannot work, with the number that would."""


class BadTopic(LogError):
    """A name or a number of partitions that no topic can have, or a topic that is there with others."""


class UnknownTopic(LogError):
    """A topic or a partition that this log does not have."""


class TopicDeleted(UnknownTopic):
    """A topic that was there and was deleted; one that has its name now is another."""


class LogInUse(LogError):
    """A directory whose log another process has open."""


class LogClosed(LogError):
    """A log that was closed."""


class OffsetOutOfRange(LogError):
    """An offset that was removed by retention, or that is not there yet."""


class Damaged(LogError):
    """Stored bytes that do not have their checksum. `next` is the first offset after them, if that is known."""

    def __init__(self, what: str, origin: str | None = None, fix: str | None = None, next: int | None = None) -> None:
        super().__init__(what, origin, fix)
        self.args = (what, origin, fix, next)
        self.next = next


class NotAcknowledged(LogError):
    """Messages that could not be made as durable as was asked for."""


class ForeignWriter(NotAcknowledged):
    """A Kafka topic of a log that something else has written to, or taken messages from."""


class KafkaUnavailable(NotAcknowledged):
    """A Kafka that does not answer, or not in time."""


class BadProducer(LogError):
    """The base of the errors of numbered producers."""


class StaleProducer(BadProducer):
    """A producer of an epoch that a newer one has ended."""


class ForgottenPush(StaleProducer):
    """Messages that a producer pushes again, so late that it is no longer known where they are."""


class WrongSequence(BadProducer):
    """Messages whose numbers do not follow those before them."""
