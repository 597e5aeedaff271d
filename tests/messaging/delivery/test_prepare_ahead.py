"""Many organizations with a few deliveries each: claimed together, read for together."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.delivery import claims, deliver, prepare
from messaging.delivery.accounts import admission
from messaging.feedback import receipts
from messaging.models import Category, Delivery, Pause, ProviderAccount, Suppression
from rme.core.cache import TtlCache
from rme.core.outbound import outbound_transport
from rme.core.provider import ProviderSettings
from rme.crm.contacts import embedded_contacts
from rme.crm.models import Contact
from tests import factories
from tests.rest import Api, message
from tests.sending import PROCESS, send_ready

pytestmark = pytest.mark.django_db


def _organizations(count: int) -> list[str]:
    """Make organizations with two emails each that are ready."""
    names = [f"small{number:02}" for number in range(count)]
    for name in names:
        row = factories.organization(name)
        factories.welcome(row)
        person = factories.contact(row)
        Api(row).bulk([message(person), message(person)])
    TtlCache.clear_all()
    return names


@pytest.mark.parametrize("count", [2, 12])
def test_statements_do_not_grow_with_the_organizations(count):
    names = _organizations(count)
    with CaptureQueriesContext(connection) as captured:
        rooms = admission.rate_rooms(dict.fromkeys(names, 50), "EMAIL")
    assert (rooms, len(captured)) == (dict.fromkeys(names, 50), 1)  # policies
    with CaptureQueriesContext(connection) as captured:
        batches = claims.claim_many("EMAIL", 0, rooms)
    assert len(captured) == 6  # savepoint, by index, lock, by index, claim, release
    assert [(each.organization_id, len(each.deliveries)) for each in batches] == [
        (name, 2) for name in names
    ]
    with CaptureQueriesContext(connection) as captured:
        contacts = prepare.read_ahead(batches)
    assert len(captured) == 3  # organizations, contacts, template versions
    assert {each: list(found) for each, found in contacts.items()} == {
        claim.organization_id: [claim.deliveries[0].contact_id] for claim in batches
    }
    with CaptureQueriesContext(connection) as captured:
        prepare.read_ahead(batches)
    assert len(captured) == 1  # contacts


@pytest.mark.parametrize("count", [2, 12])
def test_the_room_of_a_process_is_read_for_all_organizations_at_once(count):
    wanted = dict.fromkeys(_organizations(count), 50)
    with CaptureQueriesContext(connection) as captured:
        assert admission.process_rooms(wanted, "EMAIL", PROCESS.load) == wanted
    assert len(captured) == 1  # policies


@pytest.mark.parametrize("count", [2, 12])
def test_statements_of_a_window_do_not_grow_with_the_organizations(count):
    names = _organizations(count)
    batches = claims.claim_many("EMAIL", 0, admission.rate_rooms(dict.fromkeys(names, 50), "EMAIL"))
    with CaptureQueriesContext(connection) as captured:
        counts = deliver.deliver(batches, outbound_transport(), PROCESS, receipts.apply)
    assert counts == dict.fromkeys(names, 2)
    # organizations, contacts, versions, PostgreSQL's time; savepoint, locks, attempts,
    # by index, gates, release; savepoint, by index, outcomes, release; receipts: savepoint, seven,
    # release
    assert len(captured) == 23


def test_gates_of_a_window_apply_per_organization():
    suppressing, pausing, capping, free = names = _organizations(4)
    address = "same@example.com"
    Contact.objects.update(email=address)
    Suppression.objects.create(
        organization_id=suppressing, channel="EMAIL", address=address, reason="MANUAL"
    )
    Pause.objects.create(organization_id=pausing, reason="a mistake in the text")
    Category.objects.create(
        organization_id=capping, name="TRANSACTIONAL", regime="OPT_OUT", cap_count=1
    )
    batches = claims.claim_many("EMAIL", 0, admission.rate_rooms(dict.fromkeys(names, 50), "EMAIL"))
    deliver.deliver(batches, outbound_transport(), PROCESS, receipts.apply)
    found = Delivery.objects.values_list("organization_id", "status", "reason", "waiting")
    assert sorted(map(str, found)) == sorted(
        map(
            str,
            [
                *[(suppressing, "BLOCKED", "SUPPRESSED", None)] * 2,
                *[(pausing, "ACCEPTED", None, "PAUSED")] * 2,
                (capping, "BLOCKED", "FREQUENCY_CAPPED", None),
                (capping, "DELIVERED", None, None),
                *[(free, "DELIVERED", None, None)] * 2,
            ],
        )
    )


def test_rate_room_of_an_organization_depends_on_its_accounts():
    names = _organizations(3)
    for name, rate in zip(names, (7, 3, None), strict=True):
        ProviderAccount.objects.create(
            organization_id=name,
            name="slow",
            kind="simulator",
            channel="EMAIL",
            credentials=ProviderSettings().model_dump_json(),
            rate=rate,
        )
    assert admission.rate_rooms(dict.fromkeys(names, 5), "EMAIL") == {
        names[0]: 5,
        names[1]: 3,
        names[2]: 5,
    }


def test_contacts_of_another_organization_are_not_found():
    one, other = factories.organization("one"), factories.organization("other")
    own, foreign = factories.contact(one), factories.contact(other)
    wanted = {one.pk: [str(own.pk), str(foreign.pk), "003000000000001"], other.pk: []}
    found = {each: list(contacts) for each, contacts in embedded_contacts(wanted).items()}
    assert found == {one.pk: [str(own.pk)], other.pk: []}


def test_a_task_sends_all_of_many_organizations():
    names = _organizations(12)
    send_ready("EMAIL")
    sent = Delivery.objects.filter(status="DELIVERED").values_list("organization_id", flat=True)
    assert sorted(sent) == sorted(names * 2)
