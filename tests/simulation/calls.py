"""The calls of the hot path that must not cost more from day to day."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from messaging.consent.gates import Candidate, begin_check
from messaging.delivery import claims, sweeper
from messaging.domain.policy import CategoryRules, FrequencyCap
from messaging.domain.progress.receipts import Receipt
from messaging.domain.progress.transitions import Transition
from messaging.domain.statuses import EventType, Status
from messaging.feedback import receipts
from messaging.models import Delivery
from messaging.reports import queries
from messaging.store import due_organizations
from messaging.store.reports.history import HistoryFilter
from messaging.store.transitions import apply_transitions
from rme.core import ids
from rme.core.db import prepared_statements
from tests.simulation.days import ORGANIZATION

ROWS = 50
BY_STATISTICS = ("receipts", "read by id", "history", "history of a contact")
"""Calls with statements whose plans PostgreSQL chooses by its statistics."""
_CAPPED = CategoryRules(
    "NEWS",
    opt_in=False,
    resend_unknown=True,
    expires_after=timedelta(1),
    cap=FrequencyCap(1, timedelta(30)),
)


def _check_gates(candidates: Sequence[Candidate]) -> object:
    with prepared_statements.transaction() as batch:
        return begin_check(candidates, batch).read()


def hot_calls() -> Mapping[str, Callable[[], object]]:
    """Return the calls by name, for rows of the newest day."""
    sent = list(Delivery.objects.filter(status=Status.SENT).order_by("-id")[:ROWS])
    ready = list(Delivery.objects.filter(status=Status.ACCEPTED).order_by("-id")[:ROWS])
    contacts = [Candidate(ORGANIZATION, f"c{i}", "EMAIL", f"c{i}@x.example", _CAPPED,
                          str(ids.new_id())) for i in range(ROWS)]  # fmt: skip
    return {
        "claim": lambda: claims.claim(ORGANIZATION, "EMAIL", 1, ROWS),
        "ready": lambda: claims.ready("EMAIL"),
        "waiting channels": due_organizations.waiting_channels,
        "release": sweeper.release,
        "reclaim": sweeper.reclaim,
        "resolve unknown": sweeper.resolve_unknown,
        "fall back": sweeper.fall_back,
        "transition": lambda: apply_transitions(
            [Transition(id=row.pk, fence=1, status=Status.FAILED, due_at=None) for row in ready]
        ),
        "receipts": lambda: receipts.apply([Receipt(row.pk, EventType.DELIVERED) for row in sent]),
        "gates of accept": lambda: _check_gates(contacts),
        "read by id": lambda: queries.detail(ORGANIZATION, str(sent[0].message_id)),
        "history": lambda: queries.history(ORGANIZATION, HistoryFilter()),
        "history of a contact": lambda: queries.history(
            ORGANIZATION, HistoryFilter(contact_id=sent[0].contact_id)
        ),
    }
