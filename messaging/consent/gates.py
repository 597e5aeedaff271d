"""May this be sent to that person? Asked when a message is accepted and again when it is sent."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db import connection

from messaging.consent import ledger, suppressions
from messaging.models import Delivery, Pause
from messaging.policy.organization_policy import CategoryRules
from rme.core import errors, ids
from rme.core.db import sql


class Candidate(NamedTuple):
    """One person, one channel, one address (None where the channel has none, like push)."""

    contact_id: str
    channel: str
    address: str | None
    category: CategoryRules
    delivery_id: str | None = None
    """At the moment of sending: the delivery in hand, which does not count against its own cap."""


Refusal = type[errors.ApiError]


class Verdict(NamedTuple):
    """What the gates say: the refusal, or None; and the entry that decided, if one did."""

    refusal: Refusal | None = None
    entry: str | None = None


def check(organization_id: str, candidates: Sequence[Candidate]) -> list[Verdict]:
    """Say for each candidate whether it may be sent, in the same order.

    One query for any number of candidates, a second where a category has a frequency cap.
    """
    if not candidates:
        return []
    rows = sql.read(_asked(organization_id, candidates))
    return _judge(candidates, Caps(organization_id, candidates), *rows)


Look = Callable[[], tuple["Pauses", list[Verdict]]]
"""Tells what was seen: the pauses in force, and the verdicts in order."""


def look_at_send(organization_id: str, candidates: Sequence[Candidate]) -> Look:
    """Look at the gates in an open transaction, and tell later what was seen there.

    The pauses in force are in it: what is paused waits, whatever the verdict. Under `gate_lock`,
    which has to be held before.
    """
    capped = Caps(organization_id, candidates)
    answer = sql.ask([sql.Part(_PAUSES, [organization_id]), *_asked(organization_id, candidates)])

    def seen() -> tuple[Pauses, list[Verdict]]:
        pauses, *rows = sql.rows_of(answer)
        return Pauses(pauses), _judge(candidates, capped, *rows)

    return seen


def _asked(organization_id: str, candidates: Sequence[Candidate]) -> list[sql.Part]:
    contact_ids = {candidate.contact_id for candidate in candidates}
    addresses = {candidate.address for candidate in candidates if candidate.address}
    channels = {candidate.channel for candidate in candidates}
    categories = {candidate.category.name for candidate in candidates}
    return [
        suppressions.listing(organization_id, addresses, contact_ids),
        ledger.presence(organization_id, contact_ids, channels, categories),
    ]


def _judge(
    candidates: Sequence[Candidate], capped: "Caps", suppressed: sql.Rows, decisions: sql.Rows
) -> list[Verdict]:
    listed, decided = suppressions.listed_of(suppressed), ledger.present_of(decisions)
    return [_verdict(candidate, listed, decided, capped) for candidate in candidates]


def _verdict(
    candidate: Candidate, listed: suppressions.Listed, decided: ledger.Present, capped: "Caps"
) -> Verdict:
    contact_id, channel, address, rules, _ = candidate
    if entry := listed.entry(channel, address, contact_id):
        return Verdict(errors.Suppressed, entry)
    answer = decided.answer(contact_id, channel, rules.name, opt_in=rules.opt_in)
    if not answer.allowed:
        return Verdict(errors.NoConsent, answer.entry)
    if capped.reached(candidate):
        return Verdict(errors.FrequencyCapped)
    return Verdict(None, answer.entry)


_SENT_LATELY = f"""
SELECT w.contact_id, w.category, count(d.id)
FROM json_to_recordset(%s) w(contact_id text, category text, since timestamptz, least uuid)
JOIN {Delivery._meta.db_table} d ON d.organization_id = %s AND d.contact_id = w.contact_id
  AND d.category = w.category AND d.message_id >= w.least AND d.id <> ALL(%s::uuid[])
  AND d.status = ANY(%s)
GROUP BY w.contact_id, w.category
"""
_COUNTED_AT_ACCEPT = ["ACCEPTED", "SCHEDULED", "SENDING", "SENT", "DELIVERED", "UNKNOWN"]
_COUNTED_AT_SEND = ["SENT", "DELIVERED", "UNKNOWN"]


class Caps:
    """Frequency caps: what each contact had of each capped category in its window.

    At accept, what is on its way counts too; at the moment of sending only what has left.
    """

    def __init__(self, organization_id: str, candidates: Sequence[Candidate]) -> None:
        self.had: Counter[tuple[str, str]] = Counter()
        capped = {
            (c.contact_id, c.category.name): c.category.cap for c in candidates if c.category.cap
        }
        if not capped:
            return
        with connection.cursor() as cursor:
            cursor.execute("SELECT now()")
            (now,) = cursor.fetchone()
            rows = [
                {"contact_id": contact, "category": name, "least": ids.at_least(now - cap[1])}
                for (contact, name), cap in capped.items()
            ]
            own = [c.delivery_id for c in candidates if c.delivery_id]
            counted = _COUNTED_AT_SEND if own else _COUNTED_AT_ACCEPT
            cursor.execute(_SENT_LATELY, [sql.as_json(rows), organization_id, own, counted])
            for contact, name, count in cursor.fetchall():
                self.had[contact, name] = count

    def reached(self, candidate: Candidate) -> bool:
        """Say whether the cap is reached, counting this candidate in if it is not."""
        if candidate.category.cap is None:
            return False
        key = (candidate.contact_id, candidate.category.name)
        if self.had[key] >= candidate.category.cap[0]:
            return True
        self.had[key] += 1
        return False


@dataclass(frozen=True, slots=True)
class Pauses:
    """The pauses of one organization that are in force."""

    rows: Sequence[Sequence[str]]
    """Channel, category and template; what is empty is any."""

    def cover(self, channel: str, category: str, template: str | None) -> bool:
        """Say whether a send waits: every part that a pause names is the send's."""
        return any(
            wanted_channel in ("", channel)
            and wanted_category in ("", category)
            and wanted_template in ("", template)
            for wanted_channel, wanted_category, wanted_template in self.rows
        )


_PAUSES = f"""
SELECT channel, category, template FROM {Pause._meta.db_table}
WHERE organization_id = %s AND (ends_at IS NULL OR ends_at > now())
"""
