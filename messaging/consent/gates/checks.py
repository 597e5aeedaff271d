"""The checks in their order: suppression, consent, frequency cap."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from messaging.domain.gates import (
    MAY_GO,
    NO_FACTS,
    Candidate,
    GateFacts,
    GateRefusal,
    GateVerdict,
    LayerFacts,
    Pauses,
    decide,
)
from messaging.store.gates import facts as store
from messaging.store.gates import pauses_and_caps
from messaging.store.gates.facts import PendingFacts
from messaging.store.gates.pauses_and_caps import CappedContact
from rme.core import errors
from rme.core.db.prepared_statements import Batch

REFUSAL_TEXTS = {refusal: errors.by_code()[refusal].default for refusal in GateRefusal}
"""The texts of refusals, as callers read them."""
_COUNTED_AT_ACCEPT = ["ACCEPTED", "SCHEDULED", "SENDING", "SENT", "DELIVERED", "UNKNOWN"]
_COUNTED_AT_SEND = ["SENT", "DELIVERED", "UNKNOWN"]


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


# --- the checks -----------------------------------------------------------------------------------


class SendResults(NamedTuple):
    """Pauses in force by organization, and a result for each candidate in its order.

    A candidate of a paused scope waits, whatever its result is.
    """

    pauses: Mapping[str, Pauses]
    results: list[GateVerdict]


def check(candidates: Sequence[Candidate]) -> list[GateVerdict]:
    """Return for each candidate whether it may be sent, in the same order.

    One query for any number of candidates, a second where a category has a frequency cap.
    """
    if not candidates:
        return []
    facts = store.read(candidates)
    return _results(candidates, FrequencyCaps(candidates), facts)


class PendingCheck:
    """A check whose queries were sent and whose facts are read later."""

    def __init__(
        self, candidates: Sequence[Candidate], caps: FrequencyCaps, facts: PendingFacts
    ) -> None:
        self._candidates, self._caps, self._facts = candidates, caps, facts

    def read(self) -> SendResults:
        """Return the pauses and the results, by what the database answered."""
        pauses, facts = self._facts.read()
        return SendResults(pauses, _results(self._candidates, self._caps, facts))


def begin_check(candidates: Sequence[Candidate], batch: Batch) -> PendingCheck:
    """Add the check of what is about to leave to the batch of its transaction.

    One query for the candidates of all organizations. The caller already holds `gate_lock`.
    """
    return PendingCheck(candidates, FrequencyCaps(candidates), store.begin(candidates, batch))


def _results(
    candidates: Sequence[Candidate], caps: FrequencyCaps, facts: GateFacts
) -> list[GateVerdict]:
    return [_verdict(candidate, facts.of(candidate), caps) for candidate in candidates]


def _verdict(candidate: Candidate, facts: LayerFacts, caps: FrequencyCaps) -> GateVerdict:
    _, contact_id, channel, address, rules, _, _ = candidate
    if facts is NO_FACTS and not rules.opt_in and rules.cap is None:  # as nearly always
        return MAY_GO
    suppressions, consent = facts
    return decide(
        suppressions.entry(channel, address, contact_id),
        consent.permission(contact_id, channel, rules.name, opt_in=rules.opt_in, address=address),
        lambda: caps.reached(candidate),
    )
