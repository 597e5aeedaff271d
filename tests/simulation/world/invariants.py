"""What must be true of every history once its world has come to rest."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import pairwise
from unittest.mock import patch

from messaging.consent import ledger
from messaging.delivery.manual_review import Decision
from messaging.models import (
    ConsentEntry,
    MinuteCount,
    Suppression,
    WebhookDelivery,
)
from messaging.models.statuses import EventType, Status
from messaging.statistics import minutes
from push.models import Device
from rme.core import ids
from tests.simulation.world.callers import Sending
from tests.simulation.world.clock import BEGINS
from tests.simulation.world.database import ORGANIZATION
from tests.simulation.world.history import History
from tests.simulation.world.state import (
    RESENDS,
    Finding,
    Sent,
    State,
    decision_of,
    is_held,
    is_resend,
)
from tests.simulation.world.traces import traced

COUNTED_EVERY = 10
"""The minutes of one history in so many are counted: it costs as much as all else."""
AHEAD = timedelta(minutes=5)
"""A process whose clock is ahead makes ids of minutes that have not come."""
_IN_DOUBT = (None, "Unknown")
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
        stored = {each.message_id for each in sending.answers}
        known |= {ids.parse(each) for each in stored}
        if len(stored) > 1:
            yield f"{sending.key} was accepted as {len(stored)} messages"
        if any(messages[ids.parse(each)] != 1 for each in stored):
            yield f"{sending.key} was accepted and is not stored once"
        unclear += _may_be_stored_unseen(sending)
    unseen = len(messages.keys() - known)
    if unseen > unclear:
        yield f"{unseen} messages are stored that no caller was answered, {unclear} may be"


def _may_be_stored_unseen(sending: Sending) -> bool:
    """Return whether a message may be stored whose id its caller never got."""
    return bool(sending.refused) or (sending.was_unclear and not sending.answers)


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
        if row.outcome not in ("Accepted", *_IN_DOUBT):
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
        known = row.outcome not in _IN_DOUBT and not again
        if delivery.status in _UNSENT and known and not (failed or moved_on or given_up):
            yield f"{delivery.pk} is {delivery.status}, and its attempt {row.pk} was accepted"


def unanswered(state: State) -> Finding:
    """Return attempts without an outcome whose process was never disturbed."""
    for key, sent in state.attempts.items():
        process = state.history.born.get(key)
        if sent.row.outcome is None and process is not None and not process.was_disturbed:
            calls = state.world.calls.get(key, 0)
            yield f"attempt {key} has no outcome, {calls} calls, by {process.name}"


def sent_once(state: State) -> Finding:
    """Return what was sent twice outside of the stated window."""
    for key, count in state.world.calls.items():
        if count > 1:
            yield f"attempt {key} was handed over {count} times"
    for delivery_id, attempts in state.of_delivery.items():
        category = state.deliveries[delivery_id].category
        resends = sum(is_resend(each) for each in state.kinds[delivery_id])
        reviews = sum(decision_of(e) == Decision.SEND_AGAIN for e in state.kinds[delivery_id])
        by_target: defaultdict[tuple[str, str], list[Sent]] = defaultdict(list)
        for sent in attempts:
            by_target[sent.row.channel, str(sent.row.device_id or "")].append(sent)
        for (channel, device), some in by_target.items():
            held = is_held(category, channel)
            what = f"{delivery_id} on {channel} {device}".rstrip()
            yield from _doubled(what, some, held, resends, reviews)


def _doubled(
    what: str, attempts: Sequence[Sent], held: bool, resends: int, reviews: int
) -> Finding:
    taken = [each for each in attempts if each.taken]
    if len(taken) > 1 + RESENDS + reviews:
        yield f"{what} was sent {len(taken)} times"
    if len(taken) > 1 + reviews and held:
        yield f"{what} was sent {len(taken)} times, and its category holds what is unknown"
    for each in taken:
        later = [other for other in taken if other.row.fence > each.row.fence]
        # An outcome that comes after the decision to send again is stored with the attempt alone.
        was_in_doubt = each.row.outcome in _IN_DOUBT or (resends and each.row.sent_at is None)
        if later and not was_in_doubt:
            yield f"{what} was sent again after an attempt that is {each.row.outcome}"
    for fence in {each.row.fence for each in attempts}:
        own = [each.row.outcome for each in attempts if each.row.fence == fence]
        if len(own) > 1 and any(outcome in ("Unknown", "Accepted") for outcome in own[:-1]):
            yield f"{what} failed over from {own}"


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
                if each.at < max(began, taken.gate_at):
                    checked = f"began at {began}, checked at {taken.gate_at}"
                    yield f"{delivery.pk} was sent at {taken.at}, {checked}, objected at {each.at}"


def stopped(state: State) -> Finding:
    """Return STOPs by SMS that are not in the ledger and the suppressions, or are there twice."""
    of_number = {each.mobile: str(each.pk) for each in state.history.stage.people}
    stops = Counter(of_number[sender] for sender, _, _ in state.history.people.stops)
    entries = Counter(
        ConsentEntry.objects.filter(source="SMS_KEYWORD", channel="SMS").values_list(
            "contact_id", flat=True
        )
    )
    if stops != entries:
        yield f"STOPs {dict(stops)}, recorded {dict(entries)}"
    suppressed = set(Suppression.objects.filter(channel="SMS").values_list("address", flat=True))
    for sender, _, _ in state.history.people.stops:
        if sender not in suppressed:
            yield f"{sender} sent STOP and is not suppressed"


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
        for row in state.deliveries.values():
            if str(row.message_id) == message_id and row.status != Status.CANCELLED:
                yield f"{row.pk} was cancelled and is {row.status}"
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
    if not called.are_called:
        return
    for row in WebhookDelivery.objects.all():
        taken = called.accepted[history.stage.endpoints[row.endpoint_id], str(row.event_id)]
        if row.status != WebhookDelivery.Status.DELIVERED:
            yield f"the webhook delivery {row.pk} is {row.status}, due {row.due_at}"
        elif not taken:
            yield f"the webhook delivery {row.pk} is {row.status}, and nobody took it"
        for earlier, later in pairwise(taken):
            if later.at < earlier.lease_until:
                yield f"the webhook delivery {row.pk} was sent at {earlier.at} and at {later.at}"


def counts(state: State) -> Finding:
    """Return counts of minutes that are not those of the events."""
    if state.history.seed % COUNTED_EVERY:
        return
    now = state.history.clock.moment + minutes.FINAL_AFTER + AHEAD
    with patch.object(minutes, "SLICE", timedelta(days=2)):
        while minutes.count_slice(now):
            pass
    counted: Counter[str] = Counter()
    for outcome, count in MinuteCount.objects.values_list("outcome", "count"):
        counted[outcome] += count
    for kind in ("accepted", "sent", "delivered", "blocked", "expired", "cancelled"):
        events = sum(each.type == kind for each in state.events)
        if counted[kind] != events:
            yield f"{counted[kind]} {kind} are counted of {events}"
    outcomes = Counter(sent.row.outcome for sent in state.attempts.values())
    for outcome in ("Accepted", "Unknown", "Retryable"):
        if counted[f"attempt_{outcome.lower()}"] != outcomes[outcome]:
            yield f"attempts {outcome}: counted {counted}, stored {outcomes}"


def chain(state: State) -> Finding:
    """Return a ledger whose chain does not hold."""
    if state.history.people.objections and (found := ledger.verify(ORGANIZATION)).broken:
        yield f"the ledger's chain is broken at {found}"


def callers(state: State) -> Finding:
    """Return errors that no caller should get."""
    yield from state.history.callers.unexpected


INVARIANTS: Sequence[Callable[[State], Finding]] = (
    rests, accepted, recorded, unanswered, sent_once, objected, stopped, devices, reviewed,
    cancelled, history_agrees, traced, webhooks, dispatched, counts, chain, callers,
)  # fmt: skip


def check(history: History) -> list[str]:
    """Return what the state of a history violates, each with the name of its invariant."""
    if history.turns.errors:
        return []
    state = State(history)
    return [f"{each.__name__}: {found}" for each in INVARIANTS for found in each(state)]
