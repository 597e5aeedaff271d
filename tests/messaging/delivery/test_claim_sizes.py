"""How many deliveries are claimed at once: by how fast the last ones left."""

from typing import ClassVar

import pytest
from django.db import connections

from messaging import providers
from messaging.delivery import claims
from messaging.domain.accounts.admission import WINDOW
from messaging.models import Delivery, ProviderAccount
from rme.core.outcomes import Accepted
from rme.core.provider import no_progress
from tests.messaging.delivery.deliver_scene import Scripted
from tests.rest import message
from tests.sending import send_ready

BATCH = claims.BATCH_LIMIT


@pytest.mark.parametrize(
    ("count", "seconds", "size"),
    [
        (WINDOW, 0.5, WINDOW),
        (WINDOW, 0.2, 2 * WINDOW),
        (WINDOW, 0.125, 4 * WINDOW),
        (BATCH, 0.5, BATCH),
        (20 * WINDOW, 0.9, 11 * WINDOW),
        (BATCH, 30.0, WINDOW),
        (WINDOW, 0.001, BATCH),
        (WINDOW, 0.0, BATCH),
        (0, 0.5, WINDOW),
        (1, 0.4, WINDOW),
    ],
)
def test_claim_size_fits_half_a_second(count, seconds, size):
    assert claims.next_size(count, seconds) == size


class Counting(Scripted):
    """A provider that counts what is claimed whenever a window leaves."""

    kind = "counting claims"
    claimed: ClassVar[list[int]] = []

    def send(self, dispatches, transport, progress=no_progress):
        try:
            self.claimed.append(Delivery.objects.filter(status="SENDING").count())
        finally:
            connections.close_all()
        return super().send(dispatches, transport, progress)


@pytest.mark.django_db(transaction=True)
def test_claims_grow_while_messages_leave_at_once(org, api, ada, script, monkeypatch):
    script("mail", Accepted())
    monkeypatch.setitem(providers.REGISTRY, Counting.kind, Counting)
    ProviderAccount.objects.update(kind=Counting.kind)
    monkeypatch.setattr(claims, "CLAIM_SECONDS", 1e6)  # however slow the machine
    for _ in range(3):
        api.bulk([message(ada) for _ in range(2 * WINDOW)])
    send_ready("EMAIL")
    assert Counting.claimed[:2] == [WINDOW, 5 * WINDOW]


@pytest.mark.parametrize(
    ("count", "seconds", "breadth"),
    [
        (4, 0.5, 4),
        (4, 0.1, 20),
        (4, 2.0, 1),
        (64, 0.01, 256),
        (200, 0.5, 200),
        (1, 30.0, 1),
        (0, 0.01, 1),
    ],
)
def test_number_of_claimed_organizations_fits_half_a_second(count, seconds, breadth):
    assert claims.next_organizations(count, seconds) == breadth
