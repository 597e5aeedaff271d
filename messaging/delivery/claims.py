"""Claim what is ready to be sent: fair between organizations, TRANSACTIONAL first.

A claim is a compare-and-set from ACCEPTED to SENDING with a lease and a fencing token. Two workers
never hold the same delivery, and a worker whose lease has ended cannot write any more.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from time import monotonic
from typing import Any, NamedTuple

import orjson
import structlog
from django.conf import settings

from messaging.delivery import fairness
from messaging.delivery.fairness import WaitingOrganization
from messaging.models import ContentBody, Delivery, Message, MessageContent
from messaging.models.statuses import Status
from messaging.models.transitions import claim_update
from messaging.telemetry import spans
from rme.core.db import clock, sql
from rme.tenants import cells

log = structlog.get_logger(__name__)

WINDOW = 50
"""The most sends of a process that are in doubt when it dies."""
BATCH_LIMIT = 40 * WINDOW
"""The most deliveries that are claimed at once, to be sent window by window."""
CLAIM_SECONDS = 0.5
"""A claim is as large as can be sent in this time. While a provider is slow, other workers claim
their share, and where there are many organizations, none waits for long.
"""

ORGANIZATIONS = 256
"""The most that `ready` returns."""
FIRST_ORGANIZATIONS = 4
"""The number of organizations in a task's first claim."""
CLAIM_BYTES = 32 * 2**20
"""A claim ends with the message whose content takes it to this size."""

_D = Delivery._meta.db_table
_CONTENT = MessageContent._meta.db_table
_ACCEPTED = f"FROM {_D} d WHERE d.status = 'ACCEPTED' AND d.channel = %s AND d.priority ="
_NOW = "statement_timestamp()"
_SEARCH = fairness.DueStatement(Status.ACCEPTED, ORGANIZATIONS, by_channel=True)


class ClaimedDelivery(NamedTuple):
    """A delivery of a batch, with what is to be sent."""

    organization_id: str
    id: str
    message_id: str
    contact_id: str
    category: str
    channels: list[str]
    """The channels to fall back to."""
    channel: str
    address: str | None
    template_version_id: int | None
    fence: int
    """The fencing token of this claim."""
    tries: int
    expires_at: datetime
    test: bool
    template: str | None
    fallback_after: int | None
    """FIRST_DELIVERED: the seconds to wait for a confirmation before the next channel is tried."""
    previous_account_id: int | None
    """The account of the last try, if there was one."""
    ready_since: float | None
    """When it was accepted, or the time it is scheduled for, in seconds since 1970."""
    body: ContentBody

    @property
    def traceparent(self) -> str:
        """Return the context of its message's trace; empty if that is not traced."""
        return str(self.body.get("traceparent", ""))


_COLUMNS = {
    "organization_id": "d.organization_id",
    "id": "d.id",
    "message_id": "d.message_id",
    "contact_id": "d.contact_id",
    "category": "d.category",
    "channels": "coalesce(d.channels, '{}')",
    "channel": "d.channel",
    "address": "d.address",
    "template_version_id": "d.template_version_id",
    "fence": "d.fence",
    "tries": "d.tries",
    "expires_at": "extract(epoch FROM d.expires_at)::float8",
    "test": "d.test",
    "template": "m.template",
    "fallback_after": (
        "CASE m.strategy WHEN 'FIRST_DELIVERED' THEN coalesce(m.fallback_after, 300) END"
    ),
    "previous_account_id": "CASE WHEN d.fence > 1 THEN d.account_id END",
    "ready_since": "extract(epoch FROM coalesce(d.scheduled_for, d.accepted_at))::float8",
}
"""The SQL of each field of a `ClaimedDelivery` but `body`, which its message has."""
_SELECTED = ", ".join(_COLUMNS[name] for name in ClaimedDelivery._fields if name != "body")

_LEASE = f"{_NOW} + make_interval(secs => %s)"
# A content is read once, however many recipients of its message are claimed. The columns are JSON
# texts: PostgreSQL sends rows as it makes them, and the process would wake for every few.
_CLAIM = f"""
WITH locked AS MATERIALIZED (
  SELECT found.*, row_number() OVER () AS place FROM (
    SELECT d.id, d.message_id
    FROM (
      SELECT * FROM unnest(%s::text[], %s::int[]) given(organization_id, most)
      WHERE {cells.here("given.organization_id")} OFFSET 0) wanted, LATERAL (
      SELECT d.id, d.message_id {_ACCEPTED} %s
        AND d.organization_id = wanted.organization_id AND d.due_at <= {_NOW}
      ORDER BY d.due_at LIMIT wanted.most FOR UPDATE SKIP LOCKED) d
    LIMIT %s) found
), beyond AS MATERIALIZED (
  SELECT min(place) AS place FROM (
    SELECT place, sum(bytes) OVER (ORDER BY place) - bytes AS before FROM (
      SELECT first.place, coalesce(c.size, octet_length(c.body::text)) AS bytes
      FROM (SELECT message_id, min(place) AS place FROM locked GROUP BY message_id) first
      JOIN {_CONTENT} c ON {sql.by_key("c.id", "first.message_id")}) sized) summed
  WHERE before >= {CLAIM_BYTES}
), picked AS MATERIALIZED (
  SELECT id FROM locked WHERE place < coalesce((SELECT place FROM beyond), place + 1)
), claimed AS (
  {claim_update(_LEASE)}
)
SELECT (
  SELECT json_agg(json_build_array({_SELECTED}) ORDER BY d.id)::text
  FROM claimed d, LATERAL (  -- OFFSET keeps the order of this join
    SELECT m.template, m.strategy, m.fallback_after FROM {Message._meta.db_table} m
    WHERE m.id = d.message_id AND m.organization_id = d.organization_id OFFSET 0) m
), (
  SELECT json_agg(json_build_array(c.id, c.body))::text
  FROM (SELECT DISTINCT message_id FROM claimed) d
  JOIN {_CONTENT} c ON {sql.by_key("c.id", "d.message_id")}
), (SELECT place FROM beyond) IS NOT NULL
"""

_EXPIRES_AT = ClaimedDelivery._fields.index("expires_at")
_FENCE = ClaimedDelivery._fields.index("fence")


@dataclass(frozen=True, slots=True)
class Batch:
    """The deliveries of one organization on one channel that were claimed together."""

    organization_id: str
    channel: str
    deliveries: Sequence[ClaimedDelivery]
    full: bool
    """Whether there may be more to claim."""
    unreadable: Sequence[ClaimedDelivery] = ()
    """Claimed too, but their rows cannot be read: only their ids and fences are set."""
    until: float = 0.0
    """Half of the lease (monotonic): deliveries that have not been tried by then are released."""


def ready(channel: str, without: Collection[str] = ()) -> list[WaitingOrganization]:
    """Return organizations that have something ready to be sent, in an order fair to all.

    `without` are organizations to leave out.
    """
    return _SEARCH.find(channel, without)


def choose(
    waiting: Sequence[WaitingOrganization], count: int = FIRST_ORGANIZATIONS
) -> list[WaitingOrganization]:
    """Return the organizations to claim of next: at most `count`, all of the first priority.

    They are few, so that a higher priority that arrives meanwhile does not wait for long.
    """
    first = waiting[0].priority
    return [each for each in waiting if each.priority == first][:count]


def next_organizations(count: int, seconds: float) -> int:
    """Return of how many organizations to claim next, if sending those of `count` took `seconds`.

    Of many where each has little to send; of one where that takes all the time.
    """
    return min(max(int(count * CLAIM_SECONDS / max(seconds, 0.001)), 1), ORGANIZATIONS)


def next_size(count: int, seconds: float) -> int:
    """Return how many deliveries to claim next, in whole windows, if `count` took `seconds`."""
    windows = count * CLAIM_SECONDS / max(seconds, 0.001) // WINDOW
    return min(max(int(windows) * WINDOW, WINDOW), BATCH_LIMIT)


def claim(organization_id: str, channel: str, priority: int, limit: int = BATCH_LIMIT) -> Batch:
    """Claim the oldest deliveries that are ready, up to a limit, by one statement."""
    batches = claim_many(channel, priority, {organization_id: limit}, limit)
    return batches[0] if batches else Batch(organization_id, channel, [], full=False)


def claim_many(
    channel: str, priority: int, limits: Mapping[str, int], limit: int = BATCH_LIMIT
) -> list[Batch]:
    """Claim the oldest deliveries that are ready of several organizations, by one statement.

    `limits` has how many to claim of each at most, and `limit` of all together. An organization of
    which nothing was claimed has no batch.
    """
    limits = {each: count for each, count in limits.items() if count}
    if not limits:
        return []
    began = monotonic()
    until = began + settings.LEASE_SECONDS / 2
    wanted = [sql.array(limits), sql.array([str(count) for count in limits.values()])]
    ((rows, contents, cut),) = sql.read_in_order(
        _CLAIM,
        [*wanted, channel, priority, limit, settings.LEASE_SECONDS],
        setting=sql.BY_GENERIC_PLAN,
    )
    bodies = dict(_rows(contents))
    claimed: dict[str, list[ClaimedDelivery]] = defaultdict(list)
    unreadable: dict[str, list[ClaimedDelivery]] = defaultdict(list)
    for row in _rows(rows):
        organization_id, delivery_id, message_id, *_ = row
        try:
            claimed[organization_id].append(_claimed(row, bodies.get(message_id)))
        except Exception:
            log.exception(
                "claim.unreadable", delivery_id=delivery_id, organization_id=organization_id
            )
            unreadable[organization_id].append(_unreadable(row, channel))
    spans.claimed(channel, chain.from_iterable(claimed.values()), monotonic() - began)
    counts = {each: len(claimed[each]) + len(unreadable[each]) for each in limits}
    is_full = cut or sum(counts.values()) == limit
    return [
        Batch(
            each, channel, claimed[each], is_full or counts[each] == most, unreadable[each], until
        )
        for each, most in limits.items()
        if counts[each]
    ]


def _rows(text: str | None) -> list[list[Any]]:
    """Parse rows. PostgreSQL keeps numbers in JSON that no float holds, and orjson refuses; one
    such number must not make all rows unreadable.
    """
    try:
        rows: list[list[Any]] = orjson.loads(text or "[]")
    except orjson.JSONDecodeError:
        rows = json.loads(text or "[]")
    return rows


def _claimed(row: list[Any], body: object) -> ClaimedDelivery:
    """Return the delivery of a row. Raises where a column is not what it should be."""
    if not isinstance(body, dict):
        raise TypeError("the body of a message is no object")
    row[_EXPIRES_AT] = clock.of_epoch(row[_EXPIRES_AT])
    return ClaimedDelivery._make([*row, body])


def _unreadable(row: list[Any], channel: str) -> ClaimedDelivery:
    """Return what is needed to fail a delivery whose row cannot be read."""
    organization_id, delivery_id, message_id, *_ = row
    return ClaimedDelivery(
        organization_id=organization_id,
        id=delivery_id,
        message_id=message_id,
        contact_id="",
        category="",
        channels=[],
        channel=channel,
        address=None,
        template_version_id=None,
        fence=row[_FENCE],
        tries=0,
        expires_at=clock.now(),
        test=False,
        template=None,
        fallback_after=None,
        previous_account_id=None,
        ready_since=None,
        body={},
    )
