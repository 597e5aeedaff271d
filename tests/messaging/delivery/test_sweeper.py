"""Scheduled sends: when they go, that they go once, and cancelling."""

import datetime as dt
from zoneinfo import ZoneInfo

import pytest

from messaging.delivery import sweeper
from messaging.models import Category, Delivery
from rme.core.db import clock
from tests import factories
from tests.rest import Api, error, events, message, work

UTC = dt.UTC


def in_an_hour(zone="UTC"):
    return (clock.now() + dt.timedelta(hours=1)).astimezone(ZoneInfo(zone))


@pytest.mark.django_db
def test_scheduled_waits_and_goes_when_it_is_due(api, org):
    at = in_an_hour().isoformat(timespec="seconds")
    answer = api.send(message(factories.contact(org), schedule={"mode": "at", "at": at})).json()
    assert (answer["status"], answer["scheduledFor"]) == (
        "SCHEDULED",
        at.replace("+00:00", "Z"),
    )
    assert (sweeper.release(), work()) == (0, 0)
    Delivery.objects.update(due_at=clock.now() - dt.timedelta(seconds=1))
    assert (sweeper.release(), work()) == (1, 1)
    assert events(answer["messageId"]) == ["accepted", "scheduled", "sent", "delivered"]


@pytest.mark.promise("schedule-13")
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("category", "status"), [("TRANSACTIONAL", "ACCEPTED"), ("NEWS", "EXPIRED")]
)
def test_send_released_late_after_an_outage_has_the_status_of_its_category(
    api, org, category, status
):
    from messaging.models import Category

    Category.objects.create(organization=org, name="NEWS", regime="OPT_OUT")
    factories.template(org, name="t", category=category)
    at = in_an_hour().isoformat()
    body = message(
        factories.contact(org),
        category=category,
        template={"name": "t"},
        schedule={"mode": "AT", "at": at},
    )
    api.send(body)
    long_ago = clock.now() - dt.timedelta(hours=2)
    Delivery.objects.update(due_at=long_ago, scheduled_for=long_ago)
    sweeper.release()
    assert Delivery.objects.get().status == status


@pytest.mark.promise("schedule-1")
@pytest.mark.django_db
def test_local_schedule_uses_the_zone_of_each_recipient(api, org):
    ada = factories.contact(org, zone="Asia/Kolkata")
    bob = factories.contact(org, zone="America/New_York", email="bob@example.com")
    when = {"mode": "LOCAL", "time": "09:30"}
    answer = api.send(message(ada, bob, schedule=when)).json()
    times = [recipient["scheduledFor"] for recipient in answer["recipients"]]
    assert [time[11:16] in ("04:00", "13:30", "14:30") for time in times] == [True, True]
    assert answer["scheduledFor"] == min(times)


@pytest.mark.promise("bulk-7")
@pytest.mark.django_db
def test_cancel(api, org):
    at = in_an_hour().isoformat()
    body = message(factories.contact(org), schedule={"mode": "AT", "at": at})
    message_id = api.send(body).json()["messageId"]
    first = api.call("DELETE", f"/messages/{message_id}")
    again = api.call("DELETE", f"/messages/{message_id}")
    assert (first.status_code, first.json()["status"]) == (200, "CANCELLED")
    assert (again.status_code, again.content) == (200, first.content)
    assert events(message_id) == ["accepted", "scheduled", "cancelled"]
    Delivery.objects.update(due_at=clock.now() - dt.timedelta(seconds=1))
    assert (sweeper.release(), work()) == (0, 0)


@pytest.mark.promise("schedule-5")
@pytest.mark.django_db
def test_errors_of_a_schedule_name_the_field(api, org):
    person = factories.contact(org)
    response = api.send(message(person, schedule={"mode": "AT", "at": "2020-01-01T00:00:00Z"}))
    assert response.json() == error(
        "INVALID_PAYLOAD",
        "schedule.at: this time has passed",
        ("schedule.at", "this time has passed"),
    )


def _scheduled(api, person, count, **fields):
    soon = (dt.datetime.now(UTC) + dt.timedelta(hours=1)).isoformat()
    body = message(person, schedule={"mode": "AT", "at": soon}, **fields)
    api.bulk([body] * count)


def _all_due():
    Delivery.objects.update(due_at=dt.datetime.now(UTC) - dt.timedelta(seconds=1))


def _released_of(org):
    return Delivery.objects.filter(organization_id=org.pk, status="ACCEPTED").count()


@pytest.mark.promise("faults-19")
@pytest.mark.django_db
def test_release_is_fair_between_organizations(api, org):
    other = factories.organization("other")
    factories.template(other)
    _scheduled(api, factories.contact(org), 100)
    _scheduled(Api(other), factories.contact(other), 3)
    _all_due()
    assert sweeper.release(batch=10) == 8
    assert (_released_of(org), _released_of(other)) == (5, 3)


@pytest.mark.django_db
def test_release_of_one_organization_takes_the_whole_batch(api, org):
    _scheduled(api, factories.contact(org), 25)
    _all_due()
    assert [sweeper.release(batch=10) for _ in range(4)] == [10, 10, 5, 0]


@pytest.mark.django_db
def test_release_takes_transactional_first(api, org):
    Category.objects.create(organization=org, name="NEWS", regime="OPT_OUT")
    person = factories.contact(org)
    content = {"subject": "News", "text": "All of them"}
    _scheduled(api, person, 3, category="NEWS", template=None, content=content)
    _scheduled(api, person, 2)
    _all_due()
    assert sweeper.release() == 2
    assert set(Delivery.objects.filter(status="ACCEPTED").values_list("priority")) == {(0,)}
    assert sweeper.release() == 3


@pytest.mark.django_db
@pytest.mark.parametrize("count", [1, 50, 500])
def test_statements_of_a_release_do_not_grow(api, org, count, django_assert_num_queries):
    _scheduled(api, factories.contact(org), count)
    _all_due()
    # savepoint, where to start, by index, whose turn, rows, by index, statuses, release
    with django_assert_num_queries(8):
        assert sweeper.release() == count
