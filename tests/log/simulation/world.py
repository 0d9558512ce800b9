"""A log, its disk, a network and clients in one thread: the same seed is the same story, with every fault in it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from penstock.log.errors import LogError
from penstock.log.log import Log
from penstock.log.records import Receipt
from penstock.log.settings import Acknowledge, Retention, Settings
from penstock.log.single import is_single
from penstock.log.store.commit import Committer
from tests.log.checker import read_all
from tests.log.simulated import PowerLoss, SimulatedDisk
from tests.log.simulation.clients import MANY, Client, Named, Steady, Streaming
from tests.log.simulation.clock import Clock
from tests.log.simulation.groups import Group
from tests.log.simulation.history import History, Messages
from tests.log.simulation.memory import Memory
from tests.log.simulation.network import Network, Request
from tests.log.store.test_faults import LEVELS

M, W, F = Acknowledge
PARTITIONS = 2
HERE = Path("/log")
RETENTIONS = (*[Retention()] * 3, Retention(bytes=9000), Retention(age=15.0), Retention(age=15.0, by_message_time=True))


class Turns(Committer):
    """No thread: the story says when it is its turn."""

    def _run(self) -> None: ...


class World:
    def __init__(self, seed: int, clock: Clock) -> None:
        self.chance = chance = random.Random(seed)
        self.clock = clock
        self.clock.begin()
        self.faults: Counter[str] = Counter()
        self.settings = Settings(
            levels=chance.choice(((), LEVELS)), segment_bytes=4096, index_every=512, throughput=1.0,
            retention=chance.choice(RETENTIONS), flush_after=chance.choice((0.05, 1.0, 10.0)),
            producers=chance.choice((MANY, MANY, 1, 2)),
        )  # fmt: skip
        self.disk, self.network = SimulatedDisk(), Network(chance)
        most = self.settings.producers if self.settings.producers < MANY else None
        self.histories = [History(self.settings, clock, Memory(most)) for _ in range(PARTITIONS)]
        self.groups = [Group(number) for number in range(PARTITIONS)]
        self.log = Log(HERE, self.settings, self.disk)
        self.log.create("t", PARTITIONS)
        self.watch()
        least = chance.choice((M, W, F, F))
        """The least that anybody asks for: only then is what everybody is promised worth something."""
        kinds = [chance.choice((Client, Steady, Streaming, Named)) for _ in range(3)]
        self.clients = [kind(chance, self.network, self.histories[number % PARTITIONS], number % PARTITIONS,
                             chance.choice([mode for mode in (M, W, F) if mode >= least]), number)
                        for number, kind in enumerate((Steady, Streaming, *kinds))]  # fmt: skip
        if least is M:
            for client in self.clients:
                client.is_exact = False
        self.power_fails = least is F or chance.random() < 0.3
        if self.power_fails and least is W:
            for client in self.clients:
                client.is_exact = client.is_exact and client.mode is F
        self.crash_within = chance.choice((60, 60, 1000))
        """Steps of the disk. Connections that live long see more of other faults."""
        self.crash_later()

    # ---- what happens

    def run(self, steps: int) -> None:
        for _ in range(steps):
            try:
                self.step()
            except PowerLoss:
                self.crash()
            except LogError:
                self.faults["refused"] += 1  # a reader's commit, a name; clients get theirs as answers
        self.finish()

    def step(self) -> None:
        self.clock.go(self.chance.choice((0.0, 0.001, 0.02, 0.3, 1.0)))
        what = self.chance.random()
        if what < 0.45:
            self.chance.choice(self.clients).step(self.log)
        elif what < 0.7:
            request = self.network.next_request()
            if request is not None:
                self.serve(request)
        elif what < 0.78:
            self.log._committer.turn()
        elif what < 0.86:
            self.round(self.chance.randrange(PARTITIONS), sync=self.chance.random() < 0.7)
        elif what < 0.92:
            self.chance.choice(self.groups).step(self.log, self.chance)
        elif what < 0.985:
            self.trouble()
        else:
            self.look()

    def serve(self, request: Request) -> None:
        place = "t", request.partition
        try:
            together = is_single(request.frame.header) and self.chance.random() < 0.5
            if together and self.log.append_singles(*place, [request.frame], request.mode, [request]):
                self.log.ask(*place)
                return
            future = self.log.append(*place, request.frame, request.mode)
        except LogError as error:
            request.set_exception(error)
            return
        future.add_done_callback(_answer(request))

    def round(self, number: int, *, sync: bool) -> None:
        partition = self.log._partition("t", number)
        partition.write_pending()
        if sync:
            partition.sync_pending(due=self.chance.random() < 0.5)

    def trouble(self) -> None:
        what = self.chance.random()
        if what < 0.2:
            self.faults["disk full"] += 1
            self.disk.room = self.chance.choice((0, 100, 600, 3000))
        elif what < 0.35:
            self.faults["fsync"] += 1
            self.disk.failing_syncs = self.chance.randrange(1, 4)
        elif what < 0.55:
            self.disk.room, self.disk.failing_syncs = None, 0
        elif what < 0.6:
            self.faults["sleep"] += 1
            self.clock.go(self.chance.choice((20.0, 4000.0)))
        elif what < 0.65:
            self.faults["clock set"] += 1
            self.clock.jump(self.chance.choice((-4000.0, -20.0, 20.0, 4000.0)))
        elif what < 0.75:
            self.network.hold(self.chance.choice(self.clients).connection)
        elif what < 0.9:
            self.faults["cut"] += 1
            self.cut()
        elif what < 0.97:
            self.chance.choice(self.clients).restart(self.log)
        else:
            self.stop()

    def cut(self) -> None:
        """A connection is lost, often one with much that is not read yet, and often not that alone."""
        busiest = max(self.clients, key=lambda client: len(client.connection.requests))
        (busiest if self.chance.random() < 0.7 else self.chance.choice(self.clients)).disconnect()
        if self.chance.random() < 0.5:
            self.faults["fsync"] += 1
            self.disk.failing_syncs = 1

    # ---- ends and beginnings

    def crash_later(self) -> None:
        self.disk.crash_at = self.disk.steps + self.chance.randrange(2, self.crash_within)

    def crash(self, least: Acknowledge = M) -> None:
        """The log has just met a step of its disk that does not happen."""
        if self.power_fails and self.chance.random() < 0.5:
            self.faults["power loss"] += 1
            self.begin(self.disk.after_power_loss(self.chance), F)
        else:
            self.faults["kill"] += 1
            self.begin(self.disk.after_kill(), max(least, W))

    def stop(self) -> None:
        """A clean end, if the disk lets it be one."""
        self.faults["stop"] += 1
        least = M
        try:
            self.log.close()
        except LogError:
            least = W
        self.begin(self.disk.after_kill(), least)

    def begin(self, disk: SimulatedDisk, least: Acknowledge) -> None:
        """Open the log again, after an end that may have taken what was less safe than `least`."""
        self.network.cut_all()
        for client in self.clients:
            client.disconnect()
        self.disk = disk
        self.crash_later()
        try:
            self.log = Log(HERE, self.settings, disk)
        except PowerLoss:
            self.crash(least)
            return
        self.watch()
        for number, history in enumerate(self.histories):
            ends = self.log.ends("t", number)
            history.survived(self.read(number), ends.first, ends.next, least)
        for group in self.groups:
            group.begin(self.log)

    def watch(self) -> None:
        for number, history in enumerate(self.histories):
            history.memory.watch(self.log._partition("t", number))

    def finish(self) -> None:
        """Nothing fails any more: everybody gets an answer, everything is read, and is there after one more end."""
        self.disk.crash_at, self.disk.room, self.disk.failing_syncs = None, None, 0
        for client in self.clients:
            client.disconnect()
        for client in self.clients:  # one after the other, or those of whom the log remembers one at a time never end
            self.end(client)
        self.check_flushed()
        if self.power_fails:
            self.begin(self.disk.after_power_loss(self.chance), F)
        else:
            self.begin(self.disk.after_kill(), W)
        self.disk.crash_at = None
        self.look()
        self.check_clients()
        self.check_age()

    def end(self, client: Client) -> None:
        client.most = 0
        for _ in range(2000):
            if client.connection.answers or not isinstance(client, Steady):
                client.step(self.log)
            elif not client.is_done and len(client.sent) < 5:
                client.send(self.log, more=False)
            while (request := self.network.next_request()) is not None:
                self.serve(request)
            self.clock.go(0.1)
            self.log._committer.turn()
            if client.is_done:
                return
        raise AssertionError(f"{client.called} never ends: {len(client.sent)} sent, {len(client.batches)} batches")

    # ---- what must be so

    def read(self, number: int) -> Messages:
        first = self.log.ends("t", number).first
        return read_all(lambda offset: self.log.read("t", number, offset), first)

    def look(self) -> None:
        for number, history in enumerate(self.histories):
            ends = self.log.ends("t", number)
            history.check(self.read(number), ends.first, ends.next)

    def check_clients(self) -> None:
        for client in self.clients:
            found, first = self.read(client.partition), self.log.ends("t", client.partition).first
            if not isinstance(client, Steady) or (first and self.settings.producers < MANY):
                continue  # what comes for the second time may be all that is left
            numbers = client.history.check_order(found, client.called)
            if client.is_exact and (numbers or not first):
                given_up = {int(value.split()[1]) for value in client.given_up}
                missing = set(range(numbers[0] if first else 0, client.made)) - given_up - set(numbers)
                assert not missing, f"messages of {client.called} are missing: {sorted(missing)[:3]}"
        for group in self.groups:
            while group.offset < self.log.ends("t", group.partition).next:
                group.step(self.log, self.chance)
            unseen = set(self.read(group.partition)) - group.seen
            assert not unseen, f"a group was never given {sorted(unseen)[:3]}"

    def check_flushed(self) -> None:
        """What nobody waits for is fsynced, too; a partition that is broken tries to mend that once a second."""
        for _ in range(2):
            self.clock.go(self.settings.flush_after + 1.0)
            self.log._committer.turn()
        for number in range(PARTITIONS):
            ends = self.log.ends("t", number)
            assert ends.durable == ends.next, f"{ends} after twice {self.settings.flush_after + 1.0} s"

    def check_age(self) -> None:
        """What is too old goes, at last."""
        age = self.settings.retention.age
        if age is not None:
            self.clock.jump(max(self.clock.walls) - self.clock.time())
            self.clock.go(2 * age)
            self.log._committer.turn()
            for number in range(PARTITIONS):
                ends = self.log.ends("t", number)
                assert ends.first == ends.next, f"{ends} after {2 * age} s"


def _answer(request: Request) -> Callable[[Future[Receipt]], None]:
    def done(future: Future[Receipt]) -> None:
        error = future.exception()
        if error is not None:
            request.set_exception(error)
        else:
            request.set_result(future.result())

    return done
