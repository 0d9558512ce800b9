"""The systems that the log is compared with, and the log itself, behind one interface."""

from __future__ import annotations

from penstock.bench.log.peers import kafka, nats, penstock, rabbitmq, redis
from penstock.bench.log.peers.base import Peer

PEERS: dict[str, Peer] = {
    peer.name: peer for peer in (penstock.PEER, penstock.UDP, nats.PEER, redis.PEER, rabbitmq.PEER, kafka.PEER)
}
OURS = ("penstock", "penstock-udp")
