"""Taking what is ready to be sent: fair between organizations, TRANSACTIONAL first.

A claim is a compare-and-set from ACCEPTED to SENDING with a lease and a counted fence. Two
workers never hold the same delivery, and one that comes back from the dead holds nothing.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Any, NamedTuple

import orjson
import structlog
from django.conf import settings

from messaging.delivery import fairness
from messaging.models import Delivery, Message, MessageContent
from messaging.models.statuses import Status
from messaging.models.transitions import claim_update
from rme.core.db import clock, sql

log = structlog.get_logger(__name__)

WINDOW = 50
"""At most so many sends are in doubt when a worker dies: reliability's promise 3."""
BATCH = 40 * WINDOW
"""At most so many are claimed at once, to be sent window by window."""
CLAIM_SECONDS = 0.5
"""A claim is as large as leaves in this time. While a provider is slow, other workers take their
share, and where there are many organizations, nobody waits for long.
"""

ORGANIZATIONS = 64
"""`ready` finds at most so many."""
SEVERAL = 4
"""A task's first claims are of so many organizations at once."""
CLAIM_BYTES = 32 * 2**20
"""A claim ends with the message whose content fills it to this."""

_D = Delivery._meta.db_table
_CONTENT = MessageContent._meta.db_table
_ACCEPTED = f"FROM {_D} d WHERE d.status = 'ACCEPTED' AND d.channel = %s AND d.priority ="
_NOW = "statement_timestamp()"
_SEARCH = fairness.Search(Status.ACCEPTED, ORGANIZATIONS, by_channel=True)

_LEASE = f"{_NOW} + make_interval(secs => %s)"
# A content is read once, however many recipients of its message are claimed. The answers are
# texts: rows come as they are made, and a process would be woken for every few.
_CLAIM = f"""
WITH locked AS MATERIALIZED (
  SELECT found.*, row_number() OVER () AS place FROM (
    SELECT d.id, d.message_id
    FROM unnest(%s::text[], %s::int[]) wanted(organization_id, room), LATERAL (
      SELECT d.id, d.message_id {_ACCEPTED} %s
        AND d.organization_id = wanted.organization_id AND d.due_at <= {_NOW}
      ORDER BY d.due_at LIMIT wanted.room FOR UPDATE SKIP LOCKED) d
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
  SELECT json_agg(json_build_array(
    d.organization_id, d.id, d.message_id, d.contact_id, d.category, d.channels, d.channel,
    d.address, d.template_version_id, d.fence, d.tries,
    extract(epoch FROM d.expires_at)::float8, d.test, m.template,
    CASE m.strategy WHEN 'FIRST_DELIVERED' THEN coalesce(m.fallback_after, 300) END,
    CASE WHEN d.fence > 1 THEN d.account_id END) ORDER BY d.id)::text
  FROM claimed d, LATERAL (  -- OFFSET keeps the order of this join
    SELECT m.template, m.strategy, m.fallback_after FROM {Message._meta.db_table} m
    WHERE m.id = d.message_id AND m.organization_id = d.organization_id OFFSET 0) m
), (
  SELECT json_agg(json_build_array(c.id, c.body))::text
  FROM (SELECT DISTINCT message_id FROM claimed) d
  JOIN {_CONTENT} c ON {sql.by_key("c.id", "d.message_id")}
), (SELECT place FROM beyond) IS NOT NULL
"""


class Claimed(NamedTuple):
    """A delivery in hand, with what is to be sent. `fence` is that of this claim."""

    organization_id: str
    id: str
    message_id: str
    contact_id: str
    category: str
    channels: list[str]
    channel: str
    address: str | None
    template_version_id: int | None
    fence: int
    tries: int
    expires_at: datetime
    test: bool
    template: str | None
    fallback_after: int | None
    """FIRST_DELIVERED: seconds to wait for a confirmation before the next channel has its turn."""
    tried: int | None
    """The account by which the last try was, where there was one."""
    given: dict[str, Any]


_EXPIRES_AT = Claimed._fields.index("expires_at")
_MESSAGE = Claimed._fields.index("message_id")
_ID = Claimed._fields.index("id")
_FENCE = Claimed._fields.index("fence")


@dataclass(frozen=True, slots=True)
class Claim:
    """Deliveries of one organization on one channel, held until the lease ends."""

    organization_id: str
    channel: str
    deliveries: Sequence[Claimed]
    full: bool
    """There may be more."""
    unreadable: Sequence[Claimed] = ()
    """What was claimed, too, and cannot be sent: of its row only the ids are there."""
    until: float = 0.0
    """Half of the lease (monotonic): what has not been tried by then goes back."""


def ready(channel: str, without: Collection[str] = ()) -> list[tuple[int, str]]:
    """Return some that have something to send: (priority, organization), in an order fair to all.

    `without` are organizations that are not looked for.
    """
    return _SEARCH.find(channel, without)


def turn(waiting: Sequence[tuple[int, str]], several: int = SEVERAL) -> list[tuple[str, int]]:
    """Choose whose deliveries are claimed next: (organization, priority) of a few of the first
    priority.

    Few, so that what arrives meanwhile with a higher priority does not wait for a long round.
    """
    first = waiting[0][0]
    found = [(organization, priority) for priority, organization in waiting if priority == first]
    return found[:several]


def breadth(count: int, seconds: float) -> int:
    """Return of how many organizations to claim next, by how long those before took to be sent.

    Where each has little, many; one that fills the time by itself goes alone.
    """
    return min(max(int(count * CLAIM_SECONDS / max(seconds, 0.001)), 1), ORGANIZATIONS)


def size(count: int, seconds: float) -> int:
    """Say how many to claim next, in whole windows, by how long the last claim took to be sent."""
    windows = count * CLAIM_SECONDS / max(seconds, 0.001) // WINDOW
    return min(max(int(windows) * WINDOW, WINDOW), BATCH)


def claim(organization_id: str, channel: str, priority: int, limit: int = BATCH) -> Claim:
    """Take the oldest that is ready, up to a limit, by one statement."""
    claims = claim_many(channel, priority, {organization_id: limit}, limit)
    return claims[0] if claims else Claim(organization_id, channel, [], full=False)


def claim_many(
    channel: str, priority: int, rooms: Mapping[str, int], limit: int = BATCH
) -> list[Claim]:
    """Take the oldest that is ready of each organization in turn, up to a limit in all, by one
    statement. `rooms` says how much of each; those for which nothing is left have no claim.
    """
    rooms = {each: room for each, room in rooms.items() if room}
    if not rooms:
        return []
    until = monotonic() + settings.LEASE_SECONDS / 2
    wanted = [sql.array(rooms), sql.array([str(room) for room in rooms.values()])]
    ((answer, contents, cut),) = sql.read_in_order(
        _CLAIM, [*wanted, channel, priority, limit, settings.LEASE_SECONDS]
    )
    given = dict(_rows(contents))
    claimed: dict[str, list[Claimed]] = defaultdict(list)
    unreadable: dict[str, list[Claimed]] = defaultdict(list)
    for row in _rows(answer):
        organization_id = row[0]
        row.append(given.get(row[_MESSAGE]))
        try:
            claimed[organization_id].append(_claimed(row))
        except Exception:
            log.exception("claim.unreadable", delivery_id=row[_ID], organization_id=organization_id)
            unreadable[organization_id].append(_bare(row, channel))
    counts = {each: len(claimed[each]) + len(unreadable[each]) for each in rooms}
    whole = cut or sum(counts.values()) == limit
    return [
        Claim(each, channel, claimed[each], whole or counts[each] == room, unreadable[each], until)
        for each, room in rooms.items()
        if counts[each]
    ]


def _rows(answer: str | None) -> list[list[Any]]:
    """Read the rows. PostgreSQL keeps numbers in JSON that no float holds: one such must not
    make all others unreadable.
    """
    try:
        rows: list[list[Any]] = orjson.loads(answer or "[]")
    except orjson.JSONDecodeError:
        rows = json.loads(answer or "[]")
    return rows


def _claimed(row: list[Any]) -> Claimed:
    row[_EXPIRES_AT] = clock.of_epoch(row[_EXPIRES_AT])
    claimed = Claimed._make(row)
    if not isinstance(claimed.given, dict):
        raise TypeError("the body of a message is no object")
    return claimed


def _bare(row: list[Any], channel: str) -> Claimed:
    """Return what is needed to end a delivery whose row cannot be read."""
    return Claimed(
        organization_id=row[0],
        id=row[_ID],
        message_id=row[_MESSAGE],
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
        tried=None,
        given={},
    )
