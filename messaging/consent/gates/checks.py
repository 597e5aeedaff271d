"""The checks in their order: suppression, consent, frequency cap; and pauses, which only delay."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from messaging.consent.gates import active_suppressions, current_consent, pauses
from messaging.consent.gates.active_suppressions import ActiveSuppressions
from messaging.consent.gates.candidates import Candidate
from messaging.consent.gates.current_consent import CurrentConsent
from messaging.consent.gates.frequency_caps import FrequencyCaps
from messaging.consent.gates.pauses import Pauses
from rme.core import errors
from rme.core.db import prepared_statements, sql

Refusal = type[errors.ApiError]


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
        return SendResults(pauses.parse(paused), results)


def begin_check(candidates: Sequence[Candidate]) -> PendingCheck:
    """Send the check of what is about to leave, in the open transaction.

    One query for the candidates of all organizations. The caller already holds `gate_lock`.
    """
    caps = FrequencyCaps(candidates)
    organization_ids = {candidate.organization_id for candidate in candidates}
    queries = [pauses.query(organization_ids), *_queries(candidates)]
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
