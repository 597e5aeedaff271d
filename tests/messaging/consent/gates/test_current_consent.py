"""Current consent as the ledger has it; the decisions are tested in `tests/messaging/domain`."""

from datetime import UTC, datetime, timedelta

import pytest

from messaging.consent import ledger
from messaging.store.gates import current_consent
from tests import factories

pytestmark = pytest.mark.django_db
T = datetime(2026, 1, 1, tzinfo=UTC)
IN, OUT = "OPTED_IN", "OPTED_OUT"


def decide(org, *entries, opt_in=True):
    ledger.record(
        org.pk,
        [
            ledger.ConsentDecision("ada", channel, category, status, "API", T + timedelta(days=day))
            for channel, category, status, day in entries
        ],
    )
    present = current_consent.read(org.pk, ["ada"], ["EMAIL"], ["NEWS"])
    return present.allows("ada", "EMAIL", "NEWS", opt_in=opt_in)


@pytest.mark.promise("gates-6", "gates-7")
@pytest.mark.parametrize(
    ("entries", "opt_in", "allowed"),
    [
        ([("EMAIL", "NEWS", IN, 1), ("EMAIL", "NEWS", OUT, 2)], True, False),
        ([("EMAIL", "NEWS", OUT, 1), ("EMAIL", "NEWS", IN, 2)], True, True),
        ([("EMAIL", "NEWS", IN, 1), ("EMAIL", "NEWS", OUT, 1)], True, False),  # a tie
        ([("EMAIL", "NEWS", OUT, 2), ("EMAIL", "NEWS", IN, 1)], True, False),  # out of order
        ([("ALL", "ALL", IN, 1)], True, True),
        ([("ALL", "ALL", OUT, 1), ("EMAIL", "NEWS", IN, 2)], True, True),  # more specific
        ([("EMAIL", "NEWS", IN, 1), ("ALL", "ALL", OUT, 2)], True, False),  # a newer objection
        ([("SMS", "NEWS", OUT, 1)], False, True),  # another channel
        ([("EMAIL", "OTHER", OUT, 1)], False, True),  # another category
    ],
)
def test_which_entry_decides(entries, opt_in, allowed):
    assert decide(factories.organization(), *entries, opt_in=opt_in) is allowed


def test_another_organization_does_not_count():
    org, other = factories.organization(), factories.organization("other")
    ledger.record(org.pk, [ledger.ConsentDecision("ada", "EMAIL", "NEWS", IN, "API", T)])
    assert decide(other) is False
