"""What must be true of every history once its world has come to rest."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import orjson

from messaging.consent import ledger
from messaging.delivery.manual_review import Decision
from messaging.domain.statuses import EventType, Status
from messaging.models import (
    Callback,
    ConsentEntry,
    Suppression,
    WebhookDelivery,
)
from push.models import Device
from rme.core import ids
from tests.simulation.world.clock import BEGINS
from tests.simulation.world.copies import sent_once
from tests.simulation.world.counting import counts
from tests.simulation.world.database import ORGANIZATION
from tests.simulation.world.history import History
from tests.simulation.world.people import STARTS, STOPS
from tests.simulation.world.provider import DEAD
from tests.simulation.world.state import (
    IN_DOUBT,
    RESENDS,
    Finding,
    State,
    decision_of,
    is_held,
    is_resend,
)
from tests.simulation.world.traces import traced

_UNSENT = (Status.FAILED, Status.EXPIRED, Status.BLOCKED, Status.CANCELLED)
_EVENT_OF = {
    Status.SENT: {EventType.SENT},
    Status.DELIVERED: {EventType.DELIVERED},
    Status.FAILED: {EventType.FAILED, EventType.BOUNCED},
    Status.BLOCKED: {EventType.BLOCKED},
    Status.EXPIRED: {EventType.EXPIRED},
    Status.CANCELLED: {EventType.CANCELLED},
}
_ONCE = (EventType.ACCEPTED, EventType.SENT, EventType.DELIVERED, EventType.BLOCKED,
         EventType.CANCELLED, EventType.EXPIRED)  # fmt: skip


def rests(state: State) -> Finding:
    """Return what has not ended and waits for nothing that is known."""
    if not state.history.came_to_rest:
        yield "the world does not come to rest"
    for row in state.deliveries.values():
        if row.status == Status.UNKNOWN and row.due_at is None:
            own = [e.row for e in state.of_delivery[row.pk] if e.row.channel == row.channel]
            sends = len({each.fence for each in own})
            if not is_held(row.category, row.channel) and sends <= RESENDS:
                yield f"{row.pk} is in manual review after {sends} sends, category {row.category}"
        elif row.status not in (*_UNSENT, Status.SENT, Status.DELIVERED) or row.due_at is not None:
            yield f"{row.pk} is {row.status}, due {row.due_at}"


def accepted(state: State) -> Finding:
    """Return calls that were accepted and are not stored once."""
    messages = Counter(row.message_id for row in state.deliveries.values())
    known: set[object] = set()
    unclear = 0
    for sending in state.history.callers.sendings:
        stored = {*sending.answers, *sending.named}
        known |= {ids.parse(each) for each in stored}
        if len(stored) > 1:
            yield f"{sending.key} was accepted as {len(stored)} messages"
        if any(messages[ids.parse(each)] != sending.recipients for each in stored):
            yield f"{sending.key} was accepted and is not stored once"
        # A message whose id its caller never got.
        unclear += sending.was_unclear and not stored
    unseen = len(messages.keys() - known)
    if unseen > unclear:
        yield f"{unseen} messages are stored that no caller was answered, {unclear} may be"


def recorded(state: State) -> Finding:
    """Return what the provider took and our state denies."""
    for taken in state.world.taken:
        sent = state.attempts.get(taken.attempt_id)
        if sent is None:
            yield f"attempt {taken.attempt_id} was taken and is not stored"
            continue
        row, delivery = sent.row, state.deliveries[sent.row.delivery_id]
        if taken.outcome and row.outcome not in (taken.outcome, None):
            yield f"attempt {row.pk} was answered {taken.outcome} and is {row.outcome}"
        if row.outcome not in ("Accepted", *IN_DOUBT):
            yield f"attempt {row.pk} was taken and is {row.outcome}"
        # The failure of what was sent again counts, too.
        failed = any(
            other.reported & {"failed", "bounced"}
            for other in state.of_delivery[delivery.pk]
            if other.row.channel == row.channel and other.row.fence >= row.fence
        )
        moved_on = row.channel != delivery.channel
        given_up = any(decision_of(e) == Decision.GIVE_UP for e in state.kinds[delivery.pk])
        # What was to be sent again, as nobody knew of the first attempt, and was blocked.
        again = row.sent_at is None and any(is_resend(e) for e in state.kinds[delivery.pk])
        known = row.outcome not in IN_DOUBT and not again
        if delivery.status in _UNSENT and known and not (failed or moved_on or given_up):
            yield f"{delivery.pk} is {delivery.status}, and its attempt {row.pk} was accepted"


def unanswered(state: State) -> Finding:
    """Return attempts without an outcome whose process was neither killed nor frozen."""
    for key, sent in state.attempts.items():
        process = state.history.born.get(key)
        if sent.row.outcome is not None or process is None or process.was_stopped:
            continue
        calls = state.world.calls.get(key, 0)
        # While the database is away, what is stored is neither made nor removed.
        if calls or not process.failures:
            yield f"attempt {key} has no outcome, {calls} calls, by {process.name}"


def objected(state: State) -> Finding:
    """Return what was sent to people who had objected before the attempt began."""
    for sent in state.attempts.values():
        delivery = state.deliveries[sent.row.delivery_id]
        began = (sent.row.started_at - BEGINS).total_seconds()
        for each in state.history.people.objections:
            applies = (
                each.contact_id == delivery.contact_id
                and each.channel == sent.row.channel
                and each.category in (None, delivery.category)
            )
            for taken in sent.taken if applies else ():
                if each.at < max(began, taken.gate_at) < each.until:
                    checked = f"began at {began}, checked at {taken.gate_at}"
                    yield f"{delivery.pk} was sent at {taken.at}, {checked}, objected at {each.at}"


def stopped(state: State) -> Finding:
    """Return keywords by SMS that are not in the ledger once, and numbers that are not suppressed
    though STOP was the last of them.
    """
    of_number = {each.mobile: str(each.pk) for each in state.history.stage.people}
    status_of = dict.fromkeys(STOPS, ledger.OPTED_OUT) | dict.fromkeys(STARTS, ledger.OPTED_IN)
    written = Counter(
        (of_number[sender], status_of[text]) for sender, text, _ in state.history.people.keywords
    )
    found = ConsentEntry.objects.filter(source="SMS_KEYWORD", channel="SMS")
    entries = Counter(found.values_list("contact_id", "status"))
    if written != entries:
        yield f"written {dict(written)}, recorded {dict(entries)}"
    suppressed = set(Suppression.objects.filter(channel="SMS").values_list("address", flat=True))
    last: dict[str, str] = {}
    for row in Callback.objects.order_by("received_at", "pk"):
        content = orjson.loads(bytes(row.body)) if row.body else {}
        if content.get("text") in status_of:
            last[content["from"]] = content["text"]
    for sender, text in last.items():
        if text in STOPS and sender not in suppressed:
            yield f"{sender} sent {text} last and is not suppressed"


def bounced(state: State) -> Finding:
    """Return addresses that a provider found dead, and that are not suppressed."""
    suppressed = set(Suppression.objects.values_list("channel", "address"))
    for sent in state.attempts.values():
        delivery = state.deliveries[sent.row.delivery_id]
        person = state.people[delivery.contact_id]
        address = person.email if sent.row.channel == "EMAIL" else person.mobile
        found_dead = sent.row.outcome == "Rejected" and sent.row.reason == DEAD
        # START lifts what STOP has put in place of a bounce.
        may_be_lifted = address in state.history.people.started
        if found_dead and not may_be_lifted and (sent.row.channel, address) not in suppressed:
            yield f"{address} is dead and not suppressed on {sent.row.channel}"


def devices(state: State) -> Finding:
    """Return devices that are active though their tokens are known to be dead, and the reverse."""
    gone = {
        str(each.row.device_id) for each in state.attempts.values() if each.row.outcome == "Gone"
    }
    for device in Device.objects.all():
        if device.active and str(device.pk) in gone:
            yield f"{device.token} is dead and active"
        if not device.active and device.token not in state.world.dead:
            yield f"{device.token} is alive and inactive"


def reviewed(state: State) -> Finding:
    """Return what was decided twice in manual review."""
    yield from state.history.people.repeated_reviews


def cancelled(state: State) -> Finding:
    """Return cancelled messages that were not cancelled, or were sent."""
    for message_id in state.history.people.cancelled:
        rows = [row for row in state.deliveries.values() if str(row.message_id) == message_id]
        # Of several recipients, some may have been released or blocked before.
        if not any(row.status == Status.CANCELLED for row in rows):
            yield f"{message_id} was cancelled and is {[row.status for row in rows]}"
    for row in state.deliveries.values():
        if row.status == Status.CANCELLED and state.of_delivery[row.pk]:
            yield f"{row.pk} is cancelled and has attempts"


def history_agrees(state: State) -> Finding:
    """Return statuses that do not follow from the events."""
    for row in state.deliveries.values():
        own = [e for e in state.kinds[row.pk] if e.channel in (None, row.channel)]
        kinds = Counter(EventType(each.type) for each in own)
        # A confirmation counts from the channel before a fallback, too.
        anywhere = {EventType(each.type) for each in state.kinds[row.pk]}
        wanted = _EVENT_OF.get(Status(row.status))
        if wanted and not wanted & (anywhere if row.status == Status.DELIVERED else kinds.keys()):
            yield f"{row.pk} is {row.status}, its events are {sorted(kinds)}"
        bounced = row.channel == "EMAIL" and kinds[EventType.BOUNCED]
        # What was to be sent again and was blocked stays so, whatever the first attempt did.
        again = any(is_resend(each) for each in state.kinds[row.pk])
        is_final = bounced or (again and row.status in (Status.BLOCKED, Status.EXPIRED))
        if kinds[EventType.DELIVERED] and not is_final and row.status != Status.DELIVERED:
            yield f"{row.pk} was delivered and is {row.status}"
        every = Counter(
            (each.type, each.channel)
            for each in state.kinds[row.pk]
            if decision_of(each) != Decision.SEND_AGAIN
        )
        for (kind, channel), count in every.items():
            if kind in _ONCE and count > 1:
                yield f"{row.pk} has {count} events {kind} on {channel}"
        reported = {
            kind
            for sent in state.of_delivery[row.pk]
            if sent.row.channel == row.channel
            for kind in sent.reported
        }
        if "delivered" in reported and not kinds[EventType.DELIVERED]:
            yield f"{row.pk} was reported delivered, its events are {sorted(kinds)}"


def webhooks(state: State) -> Finding:
    """Return events without their webhook delivery to an endpoint, or with several."""
    rows = WebhookDelivery.objects.filter(type__startswith="message.")
    sent = Counter(rows.values_list("endpoint_id", "event_id", "type"))
    events = Counter(
        (endpoint, each.pk, f"message.{each.type}")
        for each in state.events
        for endpoint in state.history.stage.endpoints
    )
    for (_, key, kind), count in (events - sent).items():
        yield f"the event {kind} {key} lacks {count} webhook deliveries"
    for (_, key, kind), count in (sent - events).items():
        yield f"the event {kind} {key} has {count} webhook deliveries too many"


def dispatched(state: State) -> Finding:
    """Return webhook deliveries whose status is not what the endpoint did."""
    history = state.history
    called = history.endpoints
    for row in WebhookDelivery.objects.all():
        taken = called.accepted[history.stage.endpoints[row.endpoint_id], str(row.event_id)]
        if row.status != WebhookDelivery.Status.DELIVERED:
            yield f"the webhook delivery {row.pk} is {row.status}, due {row.due_at}"
        elif not taken:
            yield f"the webhook delivery {row.pk} is {row.status}, and nobody took it"
        for earlier, later in pairwise(taken):
            if later.at < earlier.lease_until:
                yield f"the webhook delivery {row.pk} was sent at {earlier.at} and at {later.at}"


def chain(state: State) -> Finding:
    """Return a ledger whose chain does not hold."""
    if (found := ledger.verify(ORGANIZATION)).broken:
        yield f"the ledger's chain is broken at {found}"


def callers(state: State) -> Finding:
    """Return errors that no caller should get."""
    yield from state.history.callers.unexpected


def deadlocks(state: State) -> Finding:
    """Return the deadlocks, though their transactions were repeated."""
    yield from state.history.turns.deadlocks


INVARIANTS: Sequence[Callable[[State], Finding]] = (
    rests, accepted, recorded, unanswered, sent_once, objected, stopped, bounced, devices, reviewed,
    cancelled, history_agrees, traced, webhooks, dispatched, counts, chain, callers,
    deadlocks,
)  # fmt: skip


_APPLIES: Mapping[Callable[[State], Finding], Callable[[History], object]] = {
    stopped: lambda history: history.people.keywords,
    reviewed: lambda history: history.people.has_reviewed,
    dispatched: lambda history: history.endpoints.are_called,
    counts: lambda history: history.shape.is_counted,
    chain: lambda history: history.people.objections,
    deadlocks: lambda history: history.faults.interleaves,
}
"""In which histories there is something to check; the other invariants are checked in all."""


def check(history: History) -> tuple[int, list[str]]:
    """Check the state of a history; return how many invariants were checked, and what violates
    them, each with the name of its invariant.
    """
    state = State(history)
    checked = [each for each in INVARIANTS if each not in _APPLIES or _APPLIES[each](history)]
    return len(checked), [f"{each.__name__}: {found}" for each in checked for found in each(state)]
