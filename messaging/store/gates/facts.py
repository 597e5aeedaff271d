"""The facts that gates decide candidates by, all read by one statement."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from messaging.domain.gates import Candidate, GateFacts, LayerFacts, Pauses
from messaging.store.gates import (
    active_suppressions,
    address_opt_outs,
    current_consent,
    pauses_and_caps,
    subjects,
)
from rme.core.db import prepared_statements, sql


class SendFacts(NamedTuple):
    """The pauses in force by organization, and the other facts."""

    pauses: Mapping[str, Pauses]
    facts: GateFacts


class PendingFacts:
    """Facts whose queries were added to a batch."""

    def __init__(self, answer: prepared_statements.PendingRows) -> None:
        self._answer = answer

    def read(self) -> SendFacts:
        """Return the facts."""
        paused, *rows = sql.rows_of(self._answer)
        return SendFacts(pauses_and_caps.pauses_of(paused), _facts(rows))


def read(candidates: Sequence[Candidate]) -> GateFacts:
    """Return the suppressions and the consent of candidates; one query."""
    return _facts(sql.read(_queries(candidates)))


def begin(candidates: Sequence[Candidate], batch: prepared_statements.Batch) -> PendingFacts:
    """Add the query for the facts of candidates, and for pauses, to a batch."""
    organization_ids = {candidate.organization_id for candidate in candidates}
    queries = [pauses_and_caps.pauses_query(organization_ids), *_queries(candidates)]
    return PendingFacts(sql.send_queries(queries, batch))


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
    asked = subjects.of(contact_ids, addresses)
    return [
        active_suppressions.query(asked, test=test),
        current_consent.query(asked, channels, categories, test=test),
        *(() if test else [address_opt_outs.query(asked, categories)]),
    ]


def _facts(rows: Sequence[sql.Rows]) -> GateFacts:
    """Return the facts of the rows of `_queries`."""
    suppressed, consented, objections, *of_test = rows
    suppressions = active_suppressions.parse(suppressed)
    consent = current_consent.parse(consented, objections)
    live = {
        organization_id: LayerFacts(suppressions[organization_id], consent[organization_id])
        for organization_id in {*suppressions, *consent}
    }
    if not of_test:
        return GateFacts(live, live)
    test_suppressions = active_suppressions.parse(of_test[0])
    test_consent = current_consent.parse(of_test[1], ())
    in_test = {
        organization_id: LayerFacts(
            test_suppressions[organization_id].above(suppressions[organization_id]),
            test_consent[organization_id].above(consent[organization_id]),
        )
        for organization_id in {*live, *test_suppressions, *test_consent}
    }
    return GateFacts(live, in_test)
