"""The checks in their order: suppression, consent, frequency cap; and pauses, which only delay."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from messaging.domain.gates import (
    MAY_GO,
    ActiveSuppressions,
    CurrentConsent,
    GateRefusal,
    Pauses,
    decide,
)
from messaging.domain.policy import CategoryRules
from messaging.store.gates import (
    active_suppressions,
    address_opt_outs,
    current_consent,
    pauses_and_caps,
)
from messaging.store.gates.pauses_and_caps import CappedContact
from rme.core import errors
from rme.core.db import prepared_statements, sql

Refusal = type[errors.ApiError]

_COUNTED_AT_ACCEPT = ["ACCEPTED", "SCHEDULED", "SENDING", "SENT", "DELIVERED", "UNKNOWN"]
_COUNTED_AT_SEND = ["SENT", "DELIVERED", "UNKNOWN"]


class Candidate(NamedTuple):
    """One contact on one channel at one address (None for push, which has no address)."""

    organization_id: str
    contact_id: str
    channel: str
    address: str | None
    category: CategoryRules
    delivery_id: str | None = None
    """Set right before sending: the delivery itself does not count against its own cap."""
    test: bool = False
    """Whether a TEST application sends it: then the TEST layer counts above the live one."""


# --- frequency caps -------------------------------------------------------------------------------


class FrequencyCaps:
    """How many messages each contact had of each capped category within its window.

    When a message is accepted, those under way count too; right before sending, only those that
    have left.
    """

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self._counts: Counter[CappedContact] = Counter()
        windows = {
            _capped(candidate): candidate.category.cap.window
            for candidate in candidates
            if candidate.category.cap
        }
        if windows:
            delivery_ids = [each.delivery_id for each in candidates if each.delivery_id]
            statuses = _COUNTED_AT_SEND if delivery_ids else _COUNTED_AT_ACCEPT
            self._counts.update(pauses_and_caps.count_recent(windows, statuses, delivery_ids))

    def reached(self, candidate: Candidate) -> bool:
        """Return whether the cap is reached; if not, count one more message."""
        cap = candidate.category.cap
        if cap is None:
            return False
        key = _capped(candidate)
        if self._counts[key] >= cap.limit:
            return True
        self._counts[key] += 1
        return False


def _capped(candidate: Candidate) -> CappedContact:
    return CappedContact(
        candidate.organization_id,
        candidate.contact_id,
        candidate.category.name,
        candidate.test,
    )


# --- pauses ---------------------------------------------------------------------------------------


def pauses_in_force(organization_id: str) -> Pauses:
    """Return an organization's pauses; one query."""
    (rows,) = sql.read([pauses_and_caps.pauses_query([organization_id])])
    return pauses_and_caps.pauses_of(rows).get(organization_id, Pauses(()))


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
    facts = sql.read(_queries(candidates))
    return _results(candidates, FrequencyCaps(candidates), facts)


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
        paused, *facts = sql.rows_of(self._answer)
        results = _results(self._candidates, self._caps, facts)
        return SendResults(pauses_and_caps.pauses_of(paused), results)


def begin_check(candidates: Sequence[Candidate], batch: prepared_statements.Batch) -> PendingCheck:
    """Add the check of what is about to leave to the batch of its transaction.

    One query for the candidates of all organizations. The caller already holds `gate_lock`.
    """
    caps = FrequencyCaps(candidates)
    organization_ids = {candidate.organization_id for candidate in candidates}
    queries = [pauses_and_caps.pauses_query(organization_ids), *_queries(candidates)]
    return PendingCheck(candidates, caps, sql.send_queries(queries, batch))


def _queries(candidates: Sequence[Candidate]) -> list[sql.Step]:
    """Return the queries of the live layer, and of the TEST layer if a candidate needs it."""
    of_test = [candidate for candidate in candidates if candidate.test]
    return [*_of_layer(candidates), *(_of_layer(of_test, test=True) if of_test else ())]


def _of_layer(candidates: Sequence[Candidate], *, test: bool = False) -> list[sql.Step]:
    addresses: defaultdict[str, set[str]] = defaultdict(set)
    contact_ids: defaultdict[str, set[str]] = defaultdict(set)
    for candidate in candidates:
        contact_ids[candidate.organization_id].add(candidate.contact_id)
        if candidate.address:
            addresses[candidate.organization_id].add(candidate.address)
    channels = {candidate.channel for candidate in candidates}
    categories = {candidate.category.name for candidate in candidates}
    return [
        active_suppressions.query(addresses, contact_ids, test=test),
        current_consent.query(contact_ids, channels, categories, test=test),
        *(() if test else [address_opt_outs.query(addresses, categories)]),
    ]


def _results(
    candidates: Sequence[Candidate], caps: FrequencyCaps, facts: Sequence[sql.Rows]
) -> list[GateResult]:
    suppressed, consented, objections, *of_test = facts
    live_suppressions = active_suppressions.parse(suppressed)
    live_consent = current_consent.parse(consented, objections)
    test_suppressions = active_suppressions.parse(of_test[0] if of_test else ())
    test_consent = current_consent.parse(of_test[1] if of_test else (), ())
    results = []
    for candidate in candidates:
        organization_id = candidate.organization_id
        suppressions = live_suppressions[organization_id]
        consent = live_consent[organization_id]
        if candidate.test:
            suppressions = test_suppressions[organization_id].above(suppressions)
            consent = test_consent[organization_id].above(consent)
        results.append(_result(candidate, suppressions, consent, caps))
    return results


def _result(
    candidate: Candidate,
    suppressions: ActiveSuppressions,
    consent: CurrentConsent,
    caps: FrequencyCaps,
) -> GateResult:
    _, contact_id, channel, address, rules, _, _ = candidate
    verdict = decide(
        suppressions.entry(channel, address, contact_id),
        consent.permission(contact_id, channel, rules.name, opt_in=rules.opt_in, address=address),
        lambda: caps.reached(candidate),
    )
    if verdict is MAY_GO:
        return _MAY_GO
    return GateResult(_REFUSALS[verdict.refusal] if verdict.refusal else None, verdict.entry)


_MAY_GO = GateResult()
_REFUSALS: Mapping[GateRefusal, Refusal] = {
    GateRefusal.SUPPRESSED: errors.Suppressed,
    GateRefusal.NO_CONSENT: errors.NoConsent,
    GateRefusal.FREQUENCY_CAPPED: errors.FrequencyCapped,
}
