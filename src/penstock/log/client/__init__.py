"""Producers and consumers, sync and asyncio."""

from __future__ import annotations

from penstock.log.client.address import Address
from penstock.log.client.aioconsumer import AsyncConsumer
from penstock.log.client.batching import Placed, Sent
from penstock.log.client.catalogue import Catalogue
from penstock.log.client.consumer import Consumer
from penstock.log.client.cursors import Message, Messages
from penstock.log.client.producer import AsyncProducer, Producer
from penstock.log.client.udp import UdpClient

__all__ = [
    "Address", "AsyncConsumer", "AsyncProducer", "Catalogue", "Consumer", "Message", "Messages", "Placed", "Producer",
    "Sent", "UdpClient",
]  # fmt: skip
