"""The checks in their order: suppression, consent, frequency cap; and pauses, which only delay."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db import connection

from messaging.consent.gates import active_suppressions, current_consent
from messaging.consent.gates.active_suppressions import ActiveSuppressions
from messaging.consent.gates.current_consent import CurrentConsent
from messaging.models import Delivery, Pause
from messaging.models.delivery_lookup import is_to_contact
from messaging.policy.organization_policy import CategoryRules
from rme.core import errors, ids
from rme.core.db import prepared_statements, sql

Refusal = type[errors.ApiError]

_IN_FORCE = f"""
SELECT organization_id, channel, category, template FROM {Pause._meta.db_table}
WHERE organization_id = ANY(%s::text[]) AND (ends_at IS NULL OR ends_at > now())
"""
_RECENT = f"""
SELECT w.organization_id, w.contact_id, w.category, recent.count
FROM json_to_recordset(%s) w(organization_id text, contact_id text, category text, least uuid),
LATERAL (
  SELECT count(*) FROM {Delivery._meta.db_table} d
  WHERE d.organization_id = w.organization_id AND {is_to_contact("d", "w.contact_id")}
    AND d.category = w.category AND d.message_id >= w.least AND d.id <> ALL(%s::uuid[])
    AND d.status = ANY(%s::text[])) recent
"""
_COUNTED_AT_ACCEPT = ["ACCEPTED", "SCHEDULED", "SENDING", "SENT", "DELIVERED", "UNKNOWN"]
_COUNTED_AT_SEND = ["SENT", "DELIVERED", "UNKNOWN"]


class Candidate(NamedTuple):
    """One contact on one channel at one address (None where the channel has none, like push)."""

    organization_id: str
    contact_id: str
    channel: str
    address: str | None
    category: CategoryRules
    delivery_id: str | None = None
    """Set right before sending: the delivery itself does not count against its own cap."""


# --- frequency caps -------------------------------------------------------------------------------


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
            {**key._asdict(), "least": ids.at_least(now - cap.window)}
            for key, cap in capped.items()
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
        key = _Key(organization_id, contact_id, category.name)
        if self._counts[key] >= category.cap.limit:
            return True
        self._counts[key] += 1
        return False


# --- pauses ---------------------------------------------------------------------------------------


class PauseScope(NamedTuple):
    """What one pause covers. An empty part covers everything."""

    channel: str
    category: str
    template: str


@dataclass(frozen=True, slots=True)
class Pauses:
    """The pauses of one organization that are in force."""

    scopes: Sequence[PauseScope]

    def cover(self, channel: str, category: str, template: str | None) -> bool:
        """Return whether any pause covers a delivery: every part it names is the delivery's."""
        return any(
            scope.channel in ("", channel)
            and scope.category in ("", category)
            and scope.template in ("", template)
            for scope in self.scopes
        )


def _pauses_query(organization_ids: Collection[str]) -> sql.Step:
    """Return the query for the pauses in force in organizations."""
    return sql.Step(_IN_FORCE, [sql.array(organization_ids)])


def _pauses(rows: sql.Rows) -> dict[str, Pauses]:
    """Return the rows of `_pauses_query` by organization, without those that have no pause."""
    found: defaultdict[str, list[PauseScope]] = defaultdict(list)
    for organization_id, *scope in rows:
        found[organization_id].append(PauseScope(*scope))
    return {each: Pauses(scopes) for each, scopes in found.items()}


def pauses_in_force(organization_id: str) -> Pauses:
    """Return an organization's pauses; one query."""
    (rows,) = sql.read([_pauses_query([organization_id])])
    return _pauses(rows).get(organization_id, Pauses(()))


# --- the checks -----------------------------------------------------------------------------------


class GateResult(NamedTuple):
    """The refusal, or None; and the id of the suppression or consent entry that decided, if any."""

    refusal: Refusal | None = None
    entry: str | None = None


class SendResults(NamedTuple):
    """Pauses in force by organization, and a result for each candidate in its order.

    A candidate of a paused scope waits, whatever its result is.
    """

    pauses: Mapping[str, Pauses]
    results: list[GateResult]


def check(candidates: Sequence[Candidate]) -> list[GateResult]:
    """Return for each candidate whether it may be sent, in the same order.

    One query for any number of candidates, a second where a category has a frequency cap.
    """
    if not candidates:
        return []
    suppressed, consent = sql.read(_queries(candidates))
    return _results(candidates, FrequencyCaps(candidates), suppressed, consent)


class PendingCheck:
    """A check whose queries were sent and whose rows are read later."""

    def __init__(
        self,
        candidates: Sequence[Candidate],
        caps: FrequencyCaps,
        answer: prepared_statements.PendingRows,
    ) -> None:
        self._candidates = candidates
        self._caps = caps
        self._answer = answer

    def read(self) -> SendResults:
        """Return what the database answered."""
        paused, suppressed, consent = sql.rows_of(self._answer)
        results = _results(self._candidates, self._caps, suppressed, consent)
        return SendResults(_pauses(paused), results)


def begin_check(candidates: Sequence[Candidate]) -> PendingCheck:
    """Send the check of what is about to leave, in the open transaction.

    One query for the candidates of all organizations. The caller already holds `gate_lock`.
    """
    caps = FrequencyCaps(candidates)
    organization_ids = {candidate.organization_id for candidate in candidates}
    queries = [_pauses_query(organization_ids), *_queries(candidates)]
    return PendingCheck(candidates, caps, sql.send_queries(queries))


def _queries(candidates: Sequence[Candidate]) -> list[sql.Step]:
    addresses: defaultdict[str, set[str]] = defaultdict(set)
    contact_ids: defaultdict[str, set[str]] = defaultdict(set)
    for candidate in candidates:
        contact_ids[candidate.organization_id].add(candidate.contact_id)
        if candidate.address:
            addresses[candidate.organization_id].add(candidate.address)
    channels = {candidate.channel for candidate in candidates}
    categories = {candidate.category.name for candidate in candidates}
    return [
        active_suppressions.query(addresses, contact_ids),
        current_consent.query(contact_ids, channels, categories),
    ]


def _results(
    candidates: Sequence[Candidate], caps: FrequencyCaps, suppressed: sql.Rows, consent: sql.Rows
) -> list[GateResult]:
    suppressions = active_suppressions.parse(suppressed)
    consents = current_consent.parse(consent)
    return [
        _result(each, suppressions[each.organization_id], consents[each.organization_id], caps)
        for each in candidates
    ]


def _result(
    candidate: Candidate,
    suppressions: ActiveSuppressions,
    consent: CurrentConsent,
    caps: FrequencyCaps,
) -> GateResult:
    _, contact_id, channel, address, rules, _ = candidate
    if entry := suppressions.entry(channel, address, contact_id):
        return GateResult(errors.Suppressed, entry)
    permission = consent.permission(contact_id, channel, rules.name, opt_in=rules.opt_in)
    if not permission.allowed:
        return GateResult(errors.NoConsent, permission.entry)
    if caps.reached(candidate.organization_id, contact_id, rules):
        return GateResult(errors.FrequencyCapped)
    return GateResult(None, permission.entry)
