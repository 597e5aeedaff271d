"""May this be sent to that person? Asked when a message is accepted and again when it is sent."""

from collections import Counter, defaultdict
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

    organization_id: str
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


def check(candidates: Sequence[Candidate]) -> list[Verdict]:
    """Return for each candidate whether it may be sent, in the same order.

    One query for any number of candidates, a second where a category has a frequency cap.
    """
    if not candidates:
        return []
    rows = sql.read(_queries(candidates))
    return _judge(candidates, Caps(candidates), *rows)


Look = Callable[[], tuple["dict[str, Pauses]", list[Verdict]]]
"""Returns what was seen: the pauses in force by organization, and the verdicts in order."""


def look_at_send(candidates: Sequence[Candidate]) -> Look:
    """Look at the gates in an open transaction, and return later what was seen there.

    One query for the candidates of all organizations. The pauses in force are in it: what is
    paused waits, whatever the verdict. Under `gate_lock`, which has to be held before.
    """
    capped = Caps(candidates)
    organization_ids = {candidate.organization_id for candidate in candidates}
    pauses = sql.Part(_PAUSES, [sql.array(organization_ids)])
    answer = sql.ask([pauses, *_queries(candidates)])

    def seen() -> tuple[dict[str, Pauses], list[Verdict]]:
        pauses, *rows = sql.rows_of(answer)
        return _by_organization(pauses), _judge(candidates, capped, *rows)

    return seen


def _queries(candidates: Sequence[Candidate]) -> list[sql.Part]:
    addresses: defaultdict[str, set[str]] = defaultdict(set)
    contact_ids: defaultdict[str, set[str]] = defaultdict(set)
    for organization_id, contact_id, _, address, *_ in candidates:
        contact_ids[organization_id].add(contact_id)
        if address:
            addresses[organization_id].add(address)
    channels = {candidate.channel for candidate in candidates}
    categories = {candidate.category.name for candidate in candidates}
    return [
        suppressions.listing(addresses, contact_ids),
        ledger.presence(contact_ids, channels, categories),
    ]


def _judge(
    candidates: Sequence[Candidate], capped: "Caps", suppressed: sql.Rows, decisions: sql.Rows
) -> list[Verdict]:
    listed, decided = suppressions.listed_of(suppressed), ledger.present_of(decisions)
    return [
        _verdict(each, listed[each.organization_id], decided[each.organization_id], capped)
        for each in candidates
    ]


def _verdict(
    candidate: Candidate, listed: suppressions.Listed, decided: ledger.Present, capped: "Caps"
) -> Verdict:
    _, contact_id, channel, address, rules, _ = candidate
    if entry := listed.entry(channel, address, contact_id):
        return Verdict(errors.Suppressed, entry)
    answer = decided.answer(contact_id, channel, rules.name, opt_in=rules.opt_in)
    if not answer.allowed:
        return Verdict(errors.NoConsent, answer.entry)
    if capped.reached(candidate):
        return Verdict(errors.FrequencyCapped)
    return Verdict(None, answer.entry)


_SENT_LATELY = f"""
SELECT w.organization_id, w.contact_id, w.category, sent.count
FROM json_to_recordset(%s) w(organization_id text, contact_id text, category text, least uuid),
LATERAL (
  SELECT count(*) FROM {Delivery._meta.db_table}
  WHERE organization_id = w.organization_id AND contact_id = w.contact_id
    AND category = w.category AND message_id >= w.least AND id <> ALL(%s::uuid[])
    AND status = ANY(%s)) sent
"""
_COUNTED_AT_ACCEPT = ["ACCEPTED", "SCHEDULED", "SENDING", "SENT", "DELIVERED", "UNKNOWN"]
_COUNTED_AT_SEND = ["SENT", "DELIVERED", "UNKNOWN"]


class Caps:
    """Frequency caps: what each contact had of each capped category in its window.

    At accept, what is on its way counts too; at the moment of sending only what has left.
    """

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self.had: Counter[tuple[str, str, str]] = Counter()
        capped = {_counted(c): c.category.cap for c in candidates if c.category.cap}
        if not capped:
            return
        with connection.cursor() as cursor:
            cursor.execute("SELECT now()")
            (now,) = cursor.fetchone()
            rows = [
                {
                    "organization_id": organization_id,
                    "contact_id": contact_id,
                    "category": name,
                    "least": ids.at_least(now - cap[1]),
                }
                for (organization_id, contact_id, name), cap in capped.items()
            ]
            own = [c.delivery_id for c in candidates if c.delivery_id]
            counted = _COUNTED_AT_SEND if own else _COUNTED_AT_ACCEPT
            cursor.execute(_SENT_LATELY, [sql.as_json(rows), own, counted])
            for *key, count in cursor.fetchall():
                self.had[tuple(key)] = count

    def reached(self, candidate: Candidate) -> bool:
        """Return whether the cap is reached, counting this candidate in if it is not."""
        if candidate.category.cap is None:
            return False
        key = _counted(candidate)
        if self.had[key] >= candidate.category.cap[0]:
            return True
        self.had[key] += 1
        return False


def _counted(candidate: Candidate) -> tuple[str, str, str]:
    """Return what a cap counts by: the organization, the contact and the category."""
    return candidate.organization_id, candidate.contact_id, candidate.category.name


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
SELECT organization_id, channel, category, template FROM {Pause._meta.db_table}
WHERE organization_id = ANY(%s::text[]) AND (ends_at IS NULL OR ends_at > now())
"""


def _by_organization(rows: sql.Rows) -> dict[str, Pauses]:
    found: defaultdict[str, list[Sequence[str]]] = defaultdict(list)
    for organization_id, *pause in rows:
        found[organization_id].append(pause)
    return {each: Pauses(pauses) for each, pauses in found.items()}
