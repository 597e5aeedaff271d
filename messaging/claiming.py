"""Taking what is ready to be sent: fair between organizations, TRANSACTIONAL first.

A claim is a compare-and-set from ACCEPTED to SENDING with a lease and a counted fence. Two
workers never hold the same delivery, and one that comes back from the dead holds nothing.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import orjson
import structlog
from django.conf import settings

from messaging.models import Delivery, Message, MessageContent
from messaging.states import TRANSITIONS, Status
from rme.core import clock, prepared, sql
from rme.core.states import seizing

log = structlog.get_logger(__name__)

WINDOW = 50
"""At most so many sends are in doubt when a worker dies: reliability's promise 3."""
BATCH = 40 * WINDOW
"""At most so many are claimed at once, to be sent window by window."""
CLAIM_SECONDS = 0.5
"""A claim is as large as leaves in this time. While a provider is slow, other workers take their
share, and where there are many organizations, nobody waits for long.
"""

_D = Delivery._meta.db_table

# The index is delivery_ready: one step an organization, however many rows each has.
_STEP = sql.loose_scan(
    Delivery, ["priority", "organization_id"], "status = 'ACCEPTED' AND channel = %s"
)
_READY = f"""
WITH RECURSIVE {_STEP}
SELECT priority, organization_id FROM step WHERE EXISTS (
  SELECT FROM {_D} d WHERE d.status = 'ACCEPTED' AND d.channel = %s
    AND d.priority = step.priority AND d.organization_id = step.organization_id
    AND d.due_at <= statement_timestamp())
ORDER BY priority, random()
"""

_LEASE = "statement_timestamp() + make_interval(secs => %s)"
# The answer is one text: rows come as they are made, and a process would be woken for every few.
_CLAIM = f"""
WITH picked AS (
  SELECT d.id FROM {_D} d
  WHERE d.status = 'ACCEPTED' AND d.channel = %s AND d.priority = %s AND d.organization_id = %s
    AND d.due_at <= statement_timestamp()
  ORDER BY d.due_at LIMIT %s FOR UPDATE SKIP LOCKED
), claimed AS (
  {seizing(Delivery, TRANSITIONS, Status.SENDING, _LEASE)}
)
SELECT json_agg(json_build_array(
  d.id, d.message_id, d.contact_id, d.category, d.channels, d.channel, d.address,
  d.template_version_id, d.fence, d.tries, extract(epoch FROM d.expires_at)::float8, d.test,
  m.template,
  CASE m.strategy WHEN 'FIRST_DELIVERED' THEN coalesce(m.fallback_after, 300) END,
  CASE WHEN d.fence > 1 THEN d.account_id END, c.body) ORDER BY d.id)::text
FROM claimed d JOIN {Message._meta.db_table} m ON m.id = d.message_id
JOIN {MessageContent._meta.db_table} c ON c.id = d.message_id
"""


class Claimed(NamedTuple):
    """A delivery in hand, with what is to be sent. `fence` is that of this claim."""

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


def ready(channel: str) -> list[tuple[int, str]]:
    """Find who has something to send: (priority, organization), in an order fair to all."""
    rows = prepared.execute(_READY, [channel] * 3)
    return [(priority, organization) for priority, organization in rows]


def turn(waiting: Sequence[tuple[int, str]]) -> list[tuple[str, int]]:
    """Choose whose windows go next: (organization, priority) of a few of the first priority.

    Few, so that what arrives meanwhile with a higher priority does not wait for a long round.
    """
    first = waiting[0][0]
    return [(organization, priority) for priority, organization in waiting if priority == first][:4]


def size(count: int, seconds: float) -> int:
    """Say how many to claim next, in whole windows, by how long the last claim took to be sent."""
    windows = count * CLAIM_SECONDS / max(seconds, 0.001) // WINDOW
    return min(max(int(windows) * WINDOW, WINDOW), BATCH)


def claim(organization_id: str, channel: str, priority: int, limit: int = BATCH) -> Claim:
    """Take the oldest that is ready, up to a limit, by one statement."""
    ((answer,),) = prepared.execute(
        _CLAIM, [channel, priority, organization_id, limit, settings.LEASE_SECONDS]
    )
    claimed: list[Claimed] = []
    unreadable: list[Claimed] = []
    for row in _rows(answer or "[]"):
        try:
            claimed.append(_claimed(row))
        except Exception:
            log.exception("claim.unreadable", delivery_id=row[0], organization_id=organization_id)
            unreadable.append(_bare(row, channel))
    full = len(claimed) + len(unreadable) == limit
    return Claim(organization_id, channel, claimed, full, unreadable)


def _rows(answer: str) -> list[list[Any]]:
    """Read the rows. PostgreSQL keeps numbers in JSON that no float holds: one such must not
    make all others unreadable.
    """
    try:
        rows: list[list[Any]] = orjson.loads(answer)
    except orjson.JSONDecodeError:
        rows = json.loads(answer)
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
        id=row[0],
        message_id=row[1],
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
