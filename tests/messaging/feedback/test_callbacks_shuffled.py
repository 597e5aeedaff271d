"""Two thousand messages, whose reports come five times each, in any order, early and late."""

import random
from collections import Counter, defaultdict
from datetime import UTC, datetime
from itertools import accumulate

import orjson
import pytest
from django.db import connection

from messaging.domain.progress.transitions import Transition
from messaging.domain.statuses import Status
from messaging.feedback import callbacks
from messaging.models import Attempt, Callback, Delivery, ProviderAccount, Suppression
from messaging.store.transitions import apply_transitions
from rme.core import ids
from rme.core.db import sql
from tests.rest import all_events

pytestmark = pytest.mark.django_db
MESSAGES = 2_000
TIMES = 5
STORIES = {
    (): 1,
    ("sent",): 2,
    ("sent", "delivered"): 8,
    ("delivered",): 4,
    ("sent", "failed"): 2,
    ("dead",): 1,
    ("failed", "delivered"): 1,  # the network thought better of it
    ("sent", "dead", "delivered"): 1,
    ("sent", "teleported", "delivered"): 1,  # a word that no table has
}
"""What is reported of a message, in its order, and how often that is so."""


@pytest.fixture
def account(org):
    settings = {"url": "https://sms.example", "dead_words": ["dead"]}
    return ProviderAccount.objects.create(
        organization=org,
        name="gateway",
        kind="http_sms",
        channel="SMS",
        credentials=orjson.dumps(settings).decode(),
    )


def sent(account, prefix):
    """Write messages that left; of a third the worker has not written down yet that they did."""
    deliveries, attempts = [], []
    for number in range(MESSAGES):
        one = ids.new_id()
        common = {"organization_id": account.organization_id, "message_id": one}
        deliveries.append(
            {
                "id": one,
                **common,
                "contact_id": f"{prefix}{number}",
                "position": 0,
                "category": "TRANSACTIONAL",
                "priority": 0,
                "channels": [],
                "channel": "SMS",
                "address": f"+{prefix}{number:08d}",
                "account_id": account.pk,
                "provider": account.name,
                "status": "SENT" if number % 3 else "SENDING",
                "expires_at": datetime.now(UTC),
                "fence": 1,
                "tries": 0,
                "test": False,
            }
        )
        attempts.append(
            {
                "id": ids.new_id(),
                **common,
                "delivery_id": one,
                "fence": 1,
                "channel": "SMS",
                "provider": account.name,
                "account_id": account.pk,
                "started_at": datetime.now(UTC),
                "outcome": "Accepted" if number % 3 else None,
                "sent_at": datetime.now(UTC) if number % 3 else None,
            }
        )
    sql.insert({Delivery: deliveries, Attempt: attempts})
    return [row["id"] for row in attempts], [row["id"] for row in deliveries]


def write_down(deliveries):
    """Record the outcomes of the attempts in progress; of some, an unknown one."""
    apply_transitions(
        [
            Transition(id=one, status=Status.SENT if number % 9 else Status.UNKNOWN, due_at=None)
            for number, one in enumerate(deliveries)
            if number % 3 == 0
        ]
    )
    written = [one for number, one in enumerate(deliveries) if number % 3 == 0 and number % 9]
    Attempt.objects.filter(delivery_id__in=written).update(sent_at=datetime.now(UTC))


def arrive(account, calls):
    """Let reports come in, in this order: (attempt, word)."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO messaging_callback (id, organization_id, account_id, digest, method, "
            "query, headers, body, received_at, due_at, tries) "
            "SELECT gen_random_uuid(), %s, %s, gen_random_uuid(), 'GET', query, '{}', '', "
            "now() - interval '1 hour', now() - interval '1 hour' + place * interval '1 us', 0 "
            "FROM unnest(%s::text[]) WITH ORDINALITY AS given(query, place)",
            [
                account.organization_id,
                account.pk,
                [f"attempt={attempt}&status={word}" for attempt, word in calls],
            ],
        )


def settle():
    """Apply what came, with what autovacuum would know if the rows were committed."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE messaging_delivery, messaging_attempt, messaging_callback")
    while callbacks.apply_due()[0]:
        pass


def state_of(deliveries):
    """Return what all came to: by the number of the message its status and its events, and who is
    suppressed.
    """
    number = {one: place for place, one in enumerate(deliveries)}
    found = defaultdict(list)
    for event in all_events():
        if event.delivery_id in number:
            found[number[event.delivery_id]].append(event.type)
    rows = Delivery.objects.filter(pk__in=deliveries).values_list("pk", "status", "reason")
    return {number[pk]: (status, reason, Counter(found[number[pk]])) for pk, status, reason in rows}


def suppressed(prefix):
    rows = Suppression.objects.filter(address__startswith=f"+{prefix}")
    return {(row.address[2:], row.reason) for row in rows}


@pytest.mark.promise("events-1")
def test_receipts_in_any_order_and_number_give_the_same_state(org, account):
    dice = random.Random(6)
    weights = list(accumulate(STORIES.values()))
    stories = dice.choices(list(STORIES), cum_weights=weights, k=MESSAGES)

    attempts, in_order = sent(account, 1)
    write_down(in_order)
    longest = max(map(len, STORIES))
    arrive(
        account,
        [
            (attempts[number], story[turn])
            for turn in range(longest)
            for number, story in enumerate(stories)
            if turn < len(story)
        ],
    )
    settle()
    Callback.objects.all().delete()

    attempts, shuffled = sent(account, 2)
    calls = [
        (attempts[number], word) for number, story in enumerate(stories) for word in story * TIMES
    ]
    dice.shuffle(calls)
    half = len(calls) // 2
    arrive(account, calls[:half])
    settle()  # of a third it is too early: they are put off
    waiting = Callback.objects.filter(due_at__isnull=False).count()
    write_down(shuffled)
    arrive(account, calls[half:])
    settle()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE messaging_callback SET due_at = received_at WHERE due_at > now()")
    settle()

    expected = state_of(in_order)
    assert state_of(shuffled) == expected
    assert suppressed(2) == suppressed(1)
    assert not Callback.objects.filter(due_at__isnull=False).exists()
    assert 0.25 < waiting / half < 0.42  # it was tried
    assert set(Counter(status for status, _, _ in expected.values())) == {
        "SENT", "DELIVERED", "FAILED", "UNKNOWN",
    }  # fmt: skip
