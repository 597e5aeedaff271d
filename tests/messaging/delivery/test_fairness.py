"""Who has its turn: found by a few steps, however many organizations wait."""

from datetime import UTC, datetime, timedelta

import pytest

from messaging.delivery import claims
from messaging.models import Delivery
from messaging.store import due_organizations
from rme.core.cache import TtlCache
from rme.core.db import clock
from rme.tenants.models import Organization
from tests.messaging.delivery import backlog_scene

SINCE = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000)


def _organizations(count: int) -> list[str]:
    rows = [Organization(pk=f"o{number:05}", name="O") for number in range(count)]
    Organization.objects.bulk_create(rows, batch_size=1000, ignore_conflicts=True)
    TtlCache.clear_all()
    return [row.pk for row in rows]


def _wait(names: list[str], **fields: object) -> None:
    """Let each organization have two deliveries that are ready, or as the fields say."""
    given: dict[str, object] = {
        "category": "NEWS",
        "channels": [],
        "channel": "EMAIL",
        "status": "ACCEPTED",
        "due_at": clock.now() - timedelta(minutes=1),
        "expires_at": clock.now() + timedelta(days=1),
        **fields,
    }
    Delivery.objects.bulk_create(
        Delivery(organization_id=name, message_id=Delivery().pk, contact_id="c", **given)
        for name in names
        for _ in range(2)
    )


@pytest.mark.django_db
def test_ready_finds_at_most_sixty_four_of_any_number():
    names = _organizations(300)
    _wait(names)
    found = claims.ready("EMAIL")
    assert len(set(found)) == len(found) == claims.ORGANIZATIONS
    assert {priority for priority, _ in found} == {1}


@pytest.mark.django_db
def test_ready_starts_at_random_and_reaches_every_organization():
    names = _organizations(300)
    _wait(names)
    found = {name for _ in range(60) for _, name in claims.ready("EMAIL")}
    assert found == set(names)


@pytest.mark.django_db
def test_ready_finds_all_of_a_few_from_any_start():
    names = _organizations(300)
    _wait([names[7], names[150], names[299]])
    for _ in range(20):
        assert set(claims.ready("EMAIL")) == {(1, names[n]) for n in (7, 150, 299)}


@pytest.mark.django_db
def test_ready_starts_with_transactional_messages_of_all_organizations():
    names = _organizations(300)
    _wait(names)
    _wait([names[11]], priority=0)
    for _ in range(20):
        assert claims.ready("EMAIL")[0] == (0, names[11])


@pytest.mark.django_db
def test_ready_leaves_out_excluded_organizations():
    names = _organizations(100)
    _wait(names)
    assert claims.ready("EMAIL", names[1:]) == [(1, names[0])]


@pytest.mark.django_db
def test_ready_finds_the_only_due_organization_among_many_waiting():
    names = _organizations(3 * due_organizations.STEPS)
    _wait(names, due_at=clock.now() + timedelta(hours=1))
    assert claims.ready("EMAIL") == []
    _wait([names[100]])
    for _ in range(20):
        assert claims.ready("EMAIL") == [(1, names[100])]


@pytest.mark.django_db
def test_waiting_channels_have_due_messages():
    names = _organizations(3)
    _wait(names[:1], channel="SMS", due_at=clock.now() + timedelta(hours=1))
    _wait(names[1:2], channel="PUSH", priority=0)
    _wait(names[2:], channel="EMAIL", status="SCHEDULED")
    assert due_organizations.waiting_channels() == ["PUSH"]


@pytest.mark.django_db(transaction=True)
def test_index_entries_read_by_ready_do_not_grow_with_organizations():
    def read(count: int) -> int:
        _organizations(count)
        backlog_scene.fill("ACCEPTED", 2 * count, organizations=count, since=SINCE)
        claims.ready("EMAIL")
        entries, _ = backlog_scene.read_by(lambda: claims.ready("EMAIL"))
        return entries

    few, many = read(100), read(5_000)
    assert many < 2 * few + 100
