"""Frequency caps: at most so many messages of a category to a contact within a window of time."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from django.db import connection

from messaging.consent.gates.candidates import Candidate
from messaging.models import Delivery
from messaging.policy.organization_policy import CategoryRules
from rme.core import ids
from rme.core.db import sql

_RECENT = f"""
SELECT w.organization_id, w.contact_id, w.category, recent.count
FROM json_to_recordset(%s) w(organization_id text, contact_id text, category text, least uuid),
LATERAL (
  SELECT count(*) FROM {Delivery._meta.db_table}
  WHERE organization_id = w.organization_id AND contact_id = w.contact_id
    AND category = w.category AND message_id >= w.least AND id <> ALL(%s::uuid[])
    AND status = ANY(%s::text[])) recent
"""
_COUNTED_AT_ACCEPT = ["ACCEPTED", "SCHEDULED", "SENDING", "SENT", "DELIVERED", "UNKNOWN"]
_COUNTED_AT_SEND = ["SENT", "DELIVERED", "UNKNOWN"]


class _Key(NamedTuple):
    """What a cap counts by."""

    organization_id: str
    contact_id: str
    category: str


class FrequencyCaps:
    """How many messages each contact had of each capped category within its window.

    When a message is accepted, those under way count too; right before sending, only those that
    have left.
    """

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self._counts: Counter[_Key] = Counter()
        capped = {
            _Key(each.organization_id, each.contact_id, each.category.name): each.category.cap
            for each in candidates
            if each.category.cap
        }
        if not capped:
            return
        with connection.cursor() as cursor:
            cursor.execute("SELECT now()")
            (now,) = cursor.fetchone()
        rows = [
            {**key._asdict(), "least": ids.at_least(now - window)}
            for key, (_, window) in capped.items()
        ]
        own = [each.delivery_id for each in candidates if each.delivery_id]
        statuses = _COUNTED_AT_SEND if own else _COUNTED_AT_ACCEPT
        counted = sql.read_in_order(
            _RECENT, [sql.as_json(rows), sql.array(own), sql.array(statuses)]
        )
        for *key, count in counted:
            self._counts[_Key(*key)] = count

    def reached(self, organization_id: str, contact_id: str, category: CategoryRules) -> bool:
        """Return whether the cap is reached; if not, count one more message."""
        if category.cap is None:
            return False
        limit, _ = category.cap
        key = _Key(organization_id, contact_id, category.name)
        if self._counts[key] >= limit:
            return True
        self._counts[key] += 1
        return False
