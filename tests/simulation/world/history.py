"""One history: the processes, what they do until the seed's world comes to rest, and its result."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import cast
from unittest.mock import patch

import orjson
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

from messaging.delivery import in_flight, late_outcomes, tasks, wakeups
from messaging.delivery.sending_process import SendingProcess
from messaging.feedback import callbacks, inbound_sms
from messaging.feedback import tasks as feedback_tasks
from messaging.feedback.inbound_sms import KeywordReply
from messaging.feedback.sms_parts import ReceivedSms
from messaging.models import Callback, ProviderAccount, WebhookEndpoint
from messaging.statistics import tasks as statistics_tasks
from messaging.webhooks import tasks as webhook_tasks
from rme.core.db import availability
from rme.core.provider import CallbackRequest
from rme.crm.models import Contact
from rme.transport import Transport
from tests.simulation.world import (
    callers,
    clock,
    database,
    people,
    shape,
    transactions,
    turns,
)
from tests.simulation.world.broker import Broker
from tests.simulation.world.callers import Callers
from tests.simulation.world.clock import VirtualClock, id_of
from tests.simulation.world.endpoint import Endpoints
from tests.simulation.world.faults import Faults
from tests.simulation.world.lock_waits import LockWaits
from tests.simulation.world.memory import Memory
from tests.simulation.world.people import People
from tests.simulation.world.provider import World, WorldProvider
from tests.simulation.world.transactions import end_session, lose_connection, with_faults
from tests.simulation.world.turns import (
    LogicalProcess,
    LogicalQueue,
    StartingThreads,
    Threading,
    Turns,
    current,
)

SKEWS = (0.0, 0.0, -150.0, 150.0)
MUTE = 0.08
"""In how many histories an account takes all and answers nothing."""
DISPATCHERS, DISPATCH_SECONDS = 2, 3.0
COUNTERS, COUNT_SECONDS = 2, 25.0
UNPROMPTED_SECONDS = 30.0
"""After this time without a task a worker looks by itself."""
SWEEP_SECONDS = (4.0, 10.0)
"""How often the sweeper runs, and how often while a process is frozen: a lease then ends."""
ROUNDS = 60
"""The most rounds in which a world comes to rest."""
TOGETHER_SECONDS = 2.0
"""What is due within this time is done by the same round."""
_real_inbound = inbound_sms.apply
CHANNELS = ("EMAIL", "SMS", "PUSH")
_NEXT_DUE = """
SELECT extract(epoch FROM least(
  (SELECT min(due_at) FROM messaging_delivery WHERE due_at IS NOT NULL),
  (SELECT min(due_at) FROM messaging_callback WHERE due_at IS NOT NULL),
  (SELECT greatest(n.due_at, w.free_at) FROM messaging_notice n
    JOIN messaging_webhookendpoint w ON w.id = n.endpoint_id
    WHERE n.due_at IS NOT NULL AND %s ORDER BY 1 LIMIT 1)))::float8
"""


class Stub:
    """The transport. A provider without a wire needs only its limit of connections."""

    per_host = 10

    def for_worker(self, *_: object, **__: object) -> "Stub":
        return self


@dataclass
class Stage:
    """What all histories of this process share."""

    clock: VirtualClock
    memory: Memory
    people: Sequence[Contact]
    accounts: dict[str, ProviderAccount]
    locks: LockWaits
    endpoints: dict[int, str]
    """The URLs of the webhook endpoints, by id."""
    rng: Random = field(default_factory=Random)
    """What our modules have in place of `random`."""
    history: "History | None" = None
    """The one that is played."""

    def sleep(self, seconds: float) -> None:
        """Let time pass for a thread of the history."""
        assert self.history
        self.history.turns.sleep(seconds)

    def new_id(self) -> int:
        """Return an id of the process whose turn it is."""
        assert self.history
        return self.history.new_id()


class History:
    """One history, from its seed."""

    def __init__(self, seed: int, stage: Stage) -> None:
        self.seed, self.stage, self.clock = seed, stage, stage.clock
        rng = self.rng = Random(f"history {seed}")
        self.shape = shape.draw(seed)
        self.clock.restart()
        self.turns = Turns(rng, self.clock, stage.memory.put_in_place, end_session)
        self.faults = Faults(Random(f"faults {seed}"), self.turns, self.clock)
        own = Random(f"world {seed}")
        self.world = World(own, self.turns, self.faults, is_mute=own.random() < MUTE)
        self.callers = Callers(Random(f"callers {seed}"), self.turns, self.faults, stage.people)
        own = Random(f"people {seed}")
        self.people = People(own, self.callers, self.world, stage.people)
        self.endpoints = Endpoints(Random(f"endpoints {seed}"), self.turns, self.faults)
        self.broker = Broker(self.clock, self.turns, self.faults)
        self.born: dict[str, LogicalProcess] = {}
        """The process that made each id."""
        self._ids = Random(f"ids {seed}")
        self.came_to_rest = self._ended = False
        self.stub = Stub()

    # --- the whole ------------------------------------------------------------------------------

    def run(self) -> None:
        """Let the history happen, and then let the world come to rest."""
        with self._in_place():
            for number in range(self.shape.copies):
                self._start(f"web {number}", self._web)
                self._start(f"sweeper {number}", self._sweeper)
                self._start(f"feedback {number}", self._feedback)
            for number in range(self.shape.workers):
                self._start(f"worker {number}", self._worker)
            for number in range(COUNTERS if self.shape.is_counted else 0):
                self._start(f"counting {number}", self._count)
            for number in range(DISPATCHERS if self.endpoints.are_called else 0):
                self._start(f"dispatcher {number}", self._dispatcher)
            self.turns.run()
            self.turns.end()
            if not self.turns.errors:
                self.turns.note("the world comes to rest")
                self.faults.stop()
                self.world.at_rest = self.endpoints.at_rest = True
                self._start("closing", self._close)
                self.turns.run()
                self.turns.end()

    @contextmanager
    def _in_place(self) -> Iterator[None]:
        turns.bind(self.turns)
        WorldProvider.world = self.world
        self.stage.rng.seed(self.seed)
        self.stage.history = self
        with ExitStack() as stack:
            enter = stack.enter_context
            enter(patch.object(in_flight, "threading", Threading))
            enter(patch.object(late_outcomes, "threading", Threading))
            enter(patch.object(late_outcomes, "threads", StartingThreads))
            enter(patch.object(late_outcomes, "SimpleQueue", LogicalQueue))
            enter(patch.object(feedback_tasks, "outbound_transport", lambda: self.stub))
            enter(patch.object(inbound_sms, "apply", self._apply_inbound))
            enter(self.endpoints.in_place())
            enter(self.broker.in_place())
            enter(self.shape.in_place())
            enter(with_faults(self.faults, self.stage.locks))
            self.stage.memory.forget()
            yield

    def new_id(self) -> int:
        thread = current()
        assert thread is not None
        process = thread.process
        seconds = self.clock.moment.timestamp() + process.skew
        process.last_id = id_of(int(seconds * 1000), self._ids, process.last_id)
        text = f"{process.last_id:032x}"
        self.born["-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))] = process
        return process.last_id

    # --- processes ------------------------------------------------------------------------------

    def _start(self, name: str, job: Callable[[LogicalProcess], None]) -> None:
        """Start a process; when it is killed, another takes its place."""
        process = LogicalProcess(name, self.rng.choice(SKEWS))
        self.stage.memory.begin(process, self.clock, expires=self.shape.caches_expire)
        self.turns.spawn(process, "main", lambda: job(process))
        watched = LogicalProcess("supervisor")
        watched.memory = process.memory

        def supervise() -> None:
            self.turns.wait(lambda: process.killed)
            self._start(name, job)

        self.turns.spawn(watched, name, supervise)

    @property
    def _is_over(self) -> bool:
        """Whether the callers are done, nothing is frozen, and what was due soon is reported; or
        a thread has failed, after which no caller may ever be done.
        """
        if self.turns.errors:
            return True
        if not (self._ended or self._has_work or self.turns.has_frozen):
            self._ended = not self._has_early_reports
        return self._ended

    @property
    def _has_work(self) -> bool:
        return self.callers.has_work or self.people.has_work

    @property
    def _has_early_reports(self) -> bool:
        return any(each.due < callers.SPAN_SECONDS for each in self.world.reports)

    def _guarded(self, job: Callable[[], object]) -> None:
        """Run a task as a worker does: while the database is away, its work is left to the next."""
        try:
            job()
        except (DatabaseError, InterfaceError) as error:
            self.turns.note(f"task ended: {type(error).__name__}")
            if not availability.is_unavailable(error):
                raise
            lose_connection()

    def _worker(self, process: LogicalProcess) -> None:
        while not self._is_over:
            prompted = self.turns.wait(lambda: self._has_task or self._is_over, UNPROMPTED_SECONDS)
            for channel in CHANNELS:
                if self.broker.take(wakeups.SEND_READY, channel) or not prompted:
                    self.turns.note(f"task {channel}")
                    self._guarded(partial(self._send, process, channel))

    def _send(self, process: LogicalProcess, channel: str) -> None:
        """Do what the task of the workers does, with what this process has in flight."""
        sending = cast(SendingProcess, process.memory["sending"])
        tasks.send(channel, cast(Transport, self.stub), sending)

    @property
    def _has_task(self) -> bool:
        return any((wakeups.SEND_READY, (each,)) in self.broker.tasks for each in CHANNELS)

    def _sweeper(self, process: LogicalProcess) -> None:
        while not self._is_over:
            self.turns.wait(lambda: self._is_over, SWEEP_SECONDS[self.turns.has_frozen])
            self._guarded(tasks.sweep.run)
            if self.world.dead:
                self._guarded(feedback_tasks.retire_devices.run)

    def _feedback(self, process: LogicalProcess) -> None:
        name = feedback_tasks.apply_callbacks.name
        while not self._is_over:
            self.turns.wait(lambda: (name, ()) in self.broker.tasks or self._is_over, 15.0)
            self.broker.take(name)
            self._guarded(feedback_tasks.apply_callbacks.run)

    def _count(self, process: LogicalProcess) -> None:
        while not self._is_over:
            self.turns.wait(lambda: self._is_over, COUNT_SECONDS)
            self._guarded(statistics_tasks.count_minutes.run)

    def _dispatcher(self, process: LogicalProcess) -> None:
        while not self._is_over:
            self.turns.wait(lambda: self._is_over, DISPATCH_SECONDS)
            self._guarded(webhook_tasks.dispatch_due_webhooks.run)

    def _web(self, process: LogicalProcess) -> None:
        """Answer programs, people and providers; with two web processes, each some of them."""
        jobs: list[tuple[str, Callable[[], None]]] = [
            ("sends", self.callers.run_sends),
            ("repeats", self.callers.run_repeats),
            ("decisions", self.people.run),
        ]
        for name, job in jobs[int(process.name.split()[1]) :: self.shape.copies]:
            self.turns.spawn(process, name, job)
        self._receive()

    def _receive(self) -> None:
        """Take the provider's callbacks; one that is not stored is repeated."""
        while not self._is_over:
            self.turns.wait(lambda: bool(self._due_reports) or self._is_over, 0.5)
            self._store_reports()

    @property
    def _due_reports(self) -> bool:
        return any(each.due <= self.clock.now for each in self.world.reports)

    def _store_reports(self) -> None:
        """Store the callbacks that are due; one that is not answered is due again."""
        while (report := self.world.next_due()) is not None:
            account = callbacks._callback_account(self.stage.accounts[report.account])
            assert account is not None
            body = orjson.dumps(report.content)
            request = CallbackRequest("", "POST", "", {}, body, self.clock.moment)
            self.turns.note(f"report {report.type}")
            report.due = self.clock.after(1)
            # It may be stored though nobody answers.
            self.world.reported.setdefault(report.attempt_id, set()).add(report.type)
            try:
                callbacks.store(account, request)
            except (DatabaseError, InterfaceError):
                lose_connection()
                continue
            self.world.reports = [each for each in self.world.reports if each is not report]
            feedback_tasks.request_callbacks()

    # --- coming to rest -------------------------------------------------------------------------

    def _close(self, process: LogicalProcess) -> None:
        """Let time pass from one thing that is due to the next, until nothing is."""
        people.resume()
        for _ in range(ROUNDS):
            self._store_reports()
            due = self._next_due()
            if due is None and not self.world.reports:
                feedback_tasks.retire_devices.run()
                if not self._review():
                    self.came_to_rest = True
                    return
                continue
            self.clock.reach((due or 0.0) + TOGETHER_SECONDS)
            self.broker.forget()
            tasks.sweep.run()
            for channel in CHANNELS:
                if self.broker.take(wakeups.SEND_READY, channel):
                    self._send(process, channel)
            if self._has_callbacks_due():
                feedback_tasks.apply_callbacks.run()
            if self.endpoints.are_called:
                webhook_tasks.dispatch_due_webhooks.run()
            if self.shape.is_counted:
                statistics_tasks.count_minutes.run()

    def _review(self) -> bool:
        """Let people decide what is in manual review, once, if they do in this history."""
        reviews, self.people.reviews_at_rest = self.people.reviews_at_rest, False
        if reviews:
            self.people.review()
        return reviews

    def _apply_inbound(self, received: Sequence[ReceivedSms]) -> list[KeywordReply]:
        self.people.after_inbound(received)
        return _real_inbound(received)

    def _has_callbacks_due(self) -> bool:
        return Callback.objects.filter(due_at__lte=self.clock.moment).exists()

    def _next_due(self) -> float | None:
        with connection.cursor() as cursor:
            cursor.execute(_NEXT_DUE, [self.endpoints.are_called])
            (found,) = cursor.fetchone()
        return None if found is None else float(found) - clock.BEGINS.timestamp()


def prepare(stage_clock: VirtualClock) -> Stage:
    """Return what all histories share, and set what they need."""
    settings.PATIENCE_SECONDS = 0.25
    people, accounts = database.contacts(), database.account_rows()
    database.warm_up()
    stage = Stage(
        stage_clock,
        Memory(),
        people,
        accounts,
        LockWaits(database.watcher()),
        dict(WebhookEndpoint.objects.values_list("pk", "url")),
    )
    transactions.install()
    clock.install(stage_clock, stage.sleep, stage.rng, stage.new_id)
    return stage
