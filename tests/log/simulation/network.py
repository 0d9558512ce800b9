"""A network that loses, delays and repeats: connections whose requests and answers arrive when chance says so."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from typing import cast

from penstock.log.frame import NOBODY, Frame
from penstock.log.records import Receipt
from penstock.log.server.sessions import Sessions
from penstock.log.server.talking import Talking
from penstock.log.settings import Acknowledge

Outcome = Receipt | BaseException


@dataclass(eq=False)
class Request:
    """A push. It is the answer's address, too: the server calls `set_result` or `set_exception`."""

    connection: Connection
    number: int
    partition: int
    frame: Frame
    mode: Acknowledge
    is_refused: bool = False

    def set_result(self, receipt: Receipt, /) -> None:
        self.connection.answers.append((self.number, receipt))

    def set_exception(self, error: BaseException, /) -> None:
        self.is_refused = True
        self.connection.answers.append((self.number, error))


@dataclass(eq=False)
class Connection:
    """In order both ways. When it is cut, what the server has not read yet may still be read, or not."""

    requests: deque[Request] = field(default_factory=deque)
    answers: deque[tuple[int, Outcome]] = field(default_factory=deque)
    delivered: deque[Request] = field(default_factory=lambda: deque(maxlen=20))
    """The last that the server has read: the client may push them again."""
    is_cut: bool = False
    held_until: int = 0
    """The server reads nothing of it before it has tried to read so often."""
    is_ending: bool = False
    """What `Sessions` sets: the server reads nothing more of it."""
    transport: None = None


class Network:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.connections: list[Connection] = []
        self.sessions = Sessions()
        self.tries = 0

    def connect(self, session: str = "") -> Connection:
        """The server has read Hello, and the client Welcome."""
        connection = Connection()
        self.sessions.begin(session, cast(Talking, connection))
        self.connections.append(connection)
        return connection

    def cut(self, connection: Connection) -> None:
        connection.is_cut = True
        connection.answers.clear()
        if self.chance.random() < 0.4:
            self.lose(connection)
        else:
            self.hold(connection)

    def hold(self, connection: Connection) -> None:
        """It takes a while until more of this arrives."""
        connection.held_until = self.tries + self.chance.choice((0, 15, 40))

    def cut_all(self) -> None:
        """The server is gone. Answers that it had sent may arrive."""
        for connection in self.connections:
            self.lose(connection)

    def lose(self, connection: Connection) -> None:
        """The server has noticed that there is no client any more, or is gone itself."""
        connection.requests.clear()
        connection.delivered.clear()
        self.sessions.end(cast(Talking, connection))

    def next_request(self) -> Request | None:
        """What the server reads now: the next of a connection, or one that has been there before."""
        self.tries += 1
        self.connections = [one for one in self.connections if (one.requests or not one.is_cut) and not one.is_ending]
        if self.chance.random() < 0.1:
            again = [each for one in self.connections for each in one.delivered if not each.is_refused]
            if again:
                return self.chance.choice(again)
        busy = [one for one in self.connections if one.requests and one.held_until < self.tries]
        if not busy:
            return None
        connection = self.chance.choice(busy)
        request = connection.requests.popleft()
        if request.frame.header.producer != NOBODY:
            connection.delivered.append(request)
        return request
