"""Release scheduled deliveries that are due, recover ended leases, decide unknown outcomes, and
fall back to the next channel.

Any number of processes may run this at once: rows are locked with SKIP LOCKED and changed by
compare-and-set.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from messaging.delivery import fairness
from messaging.models import Attempt, Delivery, SendingRules
from messaging.models.statuses import EventType, Status, StatusReason
from messaging.models.transitions import Transition, apply_transitions
from messaging.policy import organization_policy
from messaging.webhooks.events import EventRow, write_events
from rme.core.channels import Channel
from rme.core.db import sql
from rme.tenants import cells

BATCH = 1000

_D = Delivery._meta.db_table

ORGANIZATIONS = 20
"""The most organizations in a batch, chosen at random: one that has a million deliveries due does
not delay the others.
"""


class DueDelivery(NamedTuple):
    """A delivery that is due and locked; `now` is the database's time."""

    id: UUID
    organization_id: str
    message_id: UUID
    category: str
    priority: int
    channel: str
    scheduled_for: datetime | None
    due_at: datetime
    fence: int
    expires_at: datetime
    tries: int
    channels: list[str]
    now: datetime

    def event(self, kind: EventType, detail: Mapping[str, object] | None = None) -> EventRow:
        """Return an event of this delivery, of now."""
        return EventRow(
            self.organization_id,
            self.message_id,
            self.id,
            kind,
            self.now,
            channel=self.channel,
            detail=detail,
        )


_COLUMNS = ", ".join(f"d.{name}" for name in DueDelivery._fields if name not in ("channels", "now"))
_COLUMNS += ", coalesce(d.channels, '{}'), statement_timestamp()"


def _due_where(here: str) -> str:
    return f"""
SELECT {_COLUMNS} FROM {_D} d
WHERE d.status = %s AND d.due_at <= statement_timestamp() AND d.due_at IS NOT NULL
  AND NOT (d.status IN ('ACCEPTED', 'SCHEDULED')) AND {here}
ORDER BY d.due_at LIMIT %s FOR UPDATE SKIP LOCKED
"""


_DUE = _due_where(cells.here("d.organization_id"))
_DUE_LEAVING = _due_where(cells.here("d.organization_id", leaving=True))
"""What a dead worker held is taken back for an organization that leaves the cell, too."""

_SEARCH = fairness.DueStatement(Status.SCHEDULED, ORGANIZATIONS, by_channel=False)

_RELEASED = f"""
SELECT {_COLUMNS} FROM json_to_recordset(%s) chosen(priority smallint, organization_id varchar),
LATERAL (
  SELECT * FROM {_D} WHERE status = 'SCHEDULED' AND priority = chosen.priority
    AND organization_id = chosen.organization_id AND due_at <= statement_timestamp()
  ORDER BY due_at LIMIT %s FOR UPDATE SKIP LOCKED
) d
"""

# The attempts without an outcome, of the claims (delivery and fence) that made them.
_OPEN = f"""
SELECT a.delivery_id FROM unnest(%s::uuid[], %s::int[]) held(id, fence)
JOIN {Attempt._meta.db_table} a ON {sql.by_key("a.delivery_id", "held.id")} AND a.fence = held.fence
WHERE a.outcome IS NULL
"""


# --- scheduled deliveries -------------------------------------------------------------------------


def release(batch: int = BATCH) -> int:
    """Move scheduled deliveries that are due to ACCEPTED; return how many were looked at.

    TRANSACTIONAL first, and fair between organizations: each that is chosen has the same share of
    the batch. One that is found later than the organization's grace expires, unless it is
    TRANSACTIONAL.
    """
    with transaction.atomic():
        due = _released(batch)
        grace = _graces({each.organization_id for each in due if each.priority > 0})
        late = {
            each.id
            for each in due
            if each.priority > 0
            and each.scheduled_for is not None
            and each.now - each.scheduled_for > grace[each.organization_id]
        }
        apply_transitions([_expired(each) if each.id in late else _accepted(each) for each in due])
        write_events([each.event(EventType.EXPIRED) for each in due if each.id in late])
    return len(due)


def _expired(each: DueDelivery) -> Transition:
    return Transition(id=each.id, status=Status.EXPIRED, due_at=None, reason=StatusReason.EXPIRED)


def _accepted(each: DueDelivery) -> Transition:
    return Transition(id=each.id, status=Status.ACCEPTED, due_at=each.due_at, reason=None)


def _graces(organization_ids: Collection[str]) -> dict[str, timedelta]:
    """Return how late each organization lets a scheduled delivery be; one query for all."""
    found = dict(
        SendingRules.objects.filter(organization_id__in=organization_ids).values_list(
            "organization_id", "schedule_grace"
        )
    )
    usual = SendingRules().schedule_grace
    return {each: timedelta(seconds=found.get(each, usual)) for each in organization_ids}


# --- leases ---------------------------------------------------------------------------------------


def reclaim() -> int:
    """Take deliveries back whose lease has ended, since their worker is thought dead; return how
    many.

    Where an attempt was written and has no outcome, it may have left: UNKNOWN, to be decided.
    Otherwise nothing left, and the delivery is ready again at once.
    """
    with transaction.atomic():
        due = _due(Status.SENDING)
        if not due:
            return 0
        with connection.cursor() as cursor:
            cursor.execute(_OPEN, [[each.id for each in due], [each.fence for each in due]])
            in_doubt = {delivery_id for (delivery_id,) in cursor.fetchall()}
        wait = timedelta(seconds=settings.UNKNOWN_SECONDS)
        apply_transitions(
            [
                Transition(
                    id=each.id,
                    fence=each.fence,
                    status=Status.UNKNOWN if each.id in in_doubt else Status.ACCEPTED,
                    due_at=each.now + wait if each.id in in_doubt else each.now,
                    reason=StatusReason.UNKNOWN_OUTCOME if each.id in in_doubt else None,
                )
                for each in due
            ]
        )
    return len(due)


# --- unknown outcomes -----------------------------------------------------------------------------

# An attempt that turned out to be accepted after it was sent again counts as well: it made a copy.
_IN_DOUBT = f"""
SELECT id, count(DISTINCT fence), max(started_at) FROM (
  SELECT due.id, a.fence, a.started_at,
    bool_or(a.outcome IS DISTINCT FROM 'Accepted') OVER (PARTITION BY due.id, a.device_id)
      AS is_in_doubt
  FROM unnest(%s::uuid[], %s::text[]) due(id, channel)
  JOIN {Attempt._meta.db_table} a ON {sql.by_key("a.delivery_id", "due.id")}
  WHERE a.channel = due.channel AND (a.outcome IS NULL OR a.outcome IN ('Unknown', 'Accepted'))
) sent WHERE is_in_doubt GROUP BY id
"""


class UnknownAttempts(NamedTuple):
    """How often a delivery was sent with an unknown outcome, and when last."""

    times: int
    last: datetime


def resolve_unknown() -> int:
    """Decide unknown outcomes for which no receipt came: send again, or leave to manual review.

    The category says which. But after as many resends as `UNKNOWN_BACKOFF_SECONDS` has values a
    delivery goes to manual review: a provider that accepts messages and never answers would get
    copies for ever. In manual review it is still UNKNOWN, and a receipt still ends it.

    What is sent again has been tried: where that is too late it becomes FAILED, which a receipt may
    still turn to DELIVERED, and not EXPIRED.
    """
    with transaction.atomic():
        due = _due(Status.UNKNOWN)
        attempts = _unknown_attempts(due)
        waiting: list[sql.Row] = []
        again: list[Transition] = []
        events: list[EventRow] = []
        for each in due:
            sent = attempts.get(each.id, UnknownAttempts(1, each.now))
            waits_until = _waits_until(each, sent)
            if waits_until is None or waits_until > each.now:
                waiting.append({"id": each.id, "due_at": waits_until})
            elif each.expires_at <= each.now:
                again.append(
                    Transition(
                        id=each.id,
                        status=Status.FAILED,
                        due_at=None,
                        reason=StatusReason.PROVIDER_ERROR,
                        tries=each.tries,
                    )
                )
                events.append(each.event(EventType.FAILED))
            else:
                again.append(
                    Transition(
                        id=each.id,
                        status=Status.ACCEPTED,
                        due_at=each.now,
                        reason=None,
                        tries=each.tries + 1,
                    )
                )
                limit = len(settings.UNKNOWN_BACKOFF_SECONDS)
                reason = f"resent: outcome unknown ({sent.times} of {limit})"
                detail = {"decision": "RESEND", "reason": reason}
                events.append(each.event(EventType.DEFERRED, detail))
        apply_transitions(again)
        write_events(events)
        sql.update(Delivery, waiting)
    return len(due)


def _waits_until(each: DueDelivery, sent: UnknownAttempts) -> datetime | None:
    """Return when a delivery is to be sent again; None: it waits for manual review."""
    rules = organization_policy.of(each.organization_id).rules(each.category)
    waits = settings.UNKNOWN_BACKOFF_SECONDS
    if not (rules.resend_unknown or each.channel == Channel.PUSH) or sent.times > len(waits):
        return None
    wait = waits[sent.times - 1]
    return sent.last + timedelta(seconds=settings.UNKNOWN_SECONDS + wait) if wait else each.now


def _unknown_attempts(due: Sequence[DueDelivery]) -> dict[UUID, UnknownAttempts]:
    if not due:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_IN_DOUBT, [[each.id for each in due], [each.channel for each in due]])
        return {key: UnknownAttempts(times, last) for key, times, last in cursor.fetchall()}


# --- fallback -------------------------------------------------------------------------------------


def fall_back() -> int:
    """Move deliveries that were not confirmed in time on to the next channel; return how many."""
    with transaction.atomic():
        due = _due(Status.SENT)
        changed = apply_transitions(
            [
                Transition(
                    id=each.id,
                    status=Status.ACCEPTED,
                    channel=each.channels[0],
                    channels=each.channels[1:] or None,
                    address=None,
                    due_at=each.now,
                )
                for each in due
            ]
        )
        write_events([each.event(EventType.FALLBACK) for each in due if each.id in changed])
    return len(due)


# --- what is due ----------------------------------------------------------------------------------


def _due(status: Status) -> list[DueDelivery]:
    """Lock and return the deliveries of a status that are due, oldest first."""
    text = _DUE_LEAVING if status is Status.SENDING else _DUE
    return [DueDelivery(*row) for row in sql.read_in_order(text, [status, BATCH])]


def _released(batch: int) -> list[DueDelivery]:
    """Lock and return scheduled deliveries that are due: of some organizations, as many of each."""
    waiting = _SEARCH.find(without=cells.absent())
    first = [each for each in waiting if each.priority == waiting[0].priority]
    if not first:
        return []
    chosen = [each._asdict() for each in first]
    with connection.cursor() as cursor:
        cursor.execute(_RELEASED, [sql.as_json(chosen), batch // len(first)])
        return [DueDelivery(*row) for row in cursor.fetchall()]
