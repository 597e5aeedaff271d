"""The calls of the hot path that must not cost more from day to day."""

from collections.abc import Callable, Mapping
from datetime import timedelta

from messaging.consent.gates import Candidate, begin_check
from messaging.delivery import claims, fairness, sweeper
from messaging.feedback import receipts
from messaging.feedback.receipts import Receipt
from messaging.models import Delivery
from messaging.models.statuses import Status
from messaging.models.transitions import Transition, apply_transitions
from messaging.policy.organization_policy import CategoryRules, FrequencyCap
from messaging.reports import queries
from messaging.reports.history import HistoryFilter
from rme.core import ids
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


def hot_calls() -> Mapping[str, Callable[[], object]]:
    """Return the calls by name, for rows of the newest day."""
    sent = list(Delivery.objects.filter(status=Status.SENT).order_by("-id")[:ROWS])
    ready = list(Delivery.objects.filter(status=Status.ACCEPTED).order_by("-id")[:ROWS])
    contacts = [Candidate(ORGANIZATION, f"c{i}", "EMAIL", f"c{i}@x.example", _CAPPED,
                          str(ids.new_id())) for i in range(ROWS)]  # fmt: skip
    return {
        "claim": lambda: claims.claim(ORGANIZATION, "EMAIL", 1, ROWS),
        "ready": lambda: claims.ready("EMAIL"),
        "waiting channels": fairness.waiting_channels,
        "release": sweeper.release,
        "reclaim": sweeper.reclaim,
        "resolve unknown": sweeper.resolve_unknown,
        "fall back": sweeper.fall_back,
        "transition": lambda: apply_transitions(
            [Transition(id=row.pk, fence=1, status=Status.FAILED, due_at=None) for row in ready]
        ),
        "receipts": lambda: receipts.apply([Receipt(row.pk, "DELIVERED") for row in sent]),
        "gates of accept": lambda: begin_check(contacts).read(),
        "read by id": lambda: queries.detail(ORGANIZATION, str(sent[0].message_id)),
        "history": lambda: queries.history(ORGANIZATION, HistoryFilter()),
        "history of a contact": lambda: queries.history(
            ORGANIZATION, HistoryFilter(contact_id=sent[0].contact_id)
        ),
    }
