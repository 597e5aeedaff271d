"""What one claim takes: of one organization or of several, and no more bytes than are sensible."""

from dataclasses import replace
from time import monotonic

import pytest
from django.conf import settings
from django.db import connection

from messaging.delivery import claims, deliver
from messaging.feedback import receipts
from messaging.models import Attempt, Delivery, MessageContent
from messaging.store.claims import CLAIM_BYTES
from rme.core.outbound import outbound_transport
from tests import factories
from tests.rest import Api, message
from tests.sending import PROCESS

pytestmark = pytest.mark.django_db


def _waiting() -> int:
    return Delivery.objects.filter(status="ACCEPTED").count()


def test_a_content_is_stored_with_its_size(api, ada):
    api.send(message(ada, template=None, content={"subject": "s", "text": "ü" * 1000}))
    row = MessageContent.objects.get()
    assert 2000 < row.size < 2200


@pytest.mark.parametrize("known", [True, False])
def test_a_claim_ends_with_the_message_that_fills_it(org, api, ada, known):
    for _ in range(5):
        api.send(message(ada))
    size = CLAIM_BYTES // 3 + 1
    if known:
        MessageContent.objects.update(size=size)
    else:  # as the release before stored it
        with connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE {MessageContent._meta.db_table} SET size = NULL, "
                "body = jsonb_build_object('variables', "
                "jsonb_build_object('x', repeat(left(id::text, 1), %s)))",
                [size],
            )
    claim = claims.claim(org.pk, "EMAIL", 0)
    assert (len(claim.deliveries), claim.full, _waiting()) == (3, True, 2)
    claim = claims.claim(org.pk, "EMAIL", 0)
    assert (len(claim.deliveries), claim.full, _waiting()) == (2, False, 0)


def test_claim_has_at_least_one_message(org, api, ada):
    for _ in range(2):
        api.send(message(ada))
    MessageContent.objects.update(size=2 * CLAIM_BYTES)
    assert [len(claims.claim(org.pk, "EMAIL", 0).deliveries) for _ in range(3)] == [1, 1, 0]


def test_twelve_hundred_large_mails_are_claimed_in_parts(org, api, ada):
    api.bulk([message(ada) for _ in range(120)])
    MessageContent.objects.update(size=1_800_000)
    sizes = []
    while claimed := claims.claim(org.pk, "EMAIL", 0).deliveries:
        sizes.append(len(claimed))
    assert sizes == [19, 19, 19, 19, 19, 19, 6]


def test_a_content_of_many_recipients_counts_once(org, api):
    people = factories.contacts(org, 20)
    api.send(message(*people))
    MessageContent.objects.update(size=CLAIM_BYTES // 2)
    claim = claims.claim(org.pk, "EMAIL", 0)
    assert (len(claim.deliveries), claim.full) == (20, False)
    assert len({id(each.body) for each in claim.deliveries}) == 1
    assert claim.deliveries[0].body["variables"] == {"note": "hello"}


def test_claim_of_several_organizations_has_a_batch_for_each(org, api, ada):
    other = factories.organization("other")
    factories.welcome(other)
    grace = factories.contact(other, email="grace@simulator.rme.test")
    api.bulk([message(ada) for _ in range(3)])
    Api(other).bulk([message(grace) for _ in range(4)])
    batches = claims.claim_many("EMAIL", 0, {"other": 3, "nobody": 3, org.pk: 9}, 5)
    assert [(each.organization_id, len(each.deliveries), each.full) for each in batches] == [
        ("other", 3, True),
        (org.pk, 2, True),
    ]
    owned = dict(Delivery.objects.filter(status="SENDING").values_list("pk", "organization_id"))
    assert {str(key): owner for key, owner in owned.items()} == {
        each.id: claim.organization_id for claim in batches for each in claim.deliveries
    }


def test_claim_without_room_is_empty(org, api, ada):
    api.send(message(ada))
    assert claims.claim_many("EMAIL", 0, {org.pk: 0}) == []
    assert claims.claim_many("EMAIL", 0, {}) == []
    assert _waiting() == 1


def test_claim_waiting_half_its_lease_is_returned(org, api, ada):
    """Claims of one statement share the beginning of their leases, and are sent one by one."""
    api.send(message(ada))
    claim = claims.claim(org.pk, "EMAIL", 0)
    assert monotonic() < claim.until <= monotonic() + settings.LEASE_SECONDS / 2
    late = replace(claim, until=monotonic() - 1)
    assert deliver.deliver([late], outbound_transport(), PROCESS, receipts.apply) == {
        late.organization_id: 0
    }
    assert (Delivery.objects.get().status, Attempt.objects.count()) == ("ACCEPTED", 0)
