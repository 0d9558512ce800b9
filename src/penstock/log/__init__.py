"""The multilevel message log: the newest messages in the fastest level, all of them in a durable one."""

from penstock.log.frame import Frame
from penstock.log.log import Log
from penstock.log.records import Ends, ProducerIdentity, Reading, Receipt, Statistics, Topic
from penstock.log.settings import Acknowledge, Kafka, Kind, LevelSettings, Retention, Settings

__all__ = [
    "Acknowledge",
    "Ends",
    "Frame",
    "Kafka",
    "Kind",
    "LevelSettings",
    "Log",
    "ProducerIdentity",
    "Reading",
    "Receipt",
    "Retention",
    "Settings",
    "Statistics",
    "Topic",
]
