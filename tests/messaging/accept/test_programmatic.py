"""Sending from a program: what an idempotency key replays (`send_push` itself: tests/push)."""

import pytest

from messaging.accept import send_push
from messaging.models import Message
from rme.core import errors
from tests import factories

pytestmark = pytest.mark.django_db


def test_a_stored_refusal_is_raised_again(org):
    person = factories.contact(org)
    refusals = []
    for _ in range(2):
        with pytest.raises(errors.Unreachable) as refused:
            send_push(org, str(person.pk), title="Hello", body="Hi", idempotency_key="order-7")
        refusals.append(refused.value)
    first, again = ((error.message, error.details, error.message_id) for error in refusals)
    assert first == again
    assert refusals[1].message_id == str(Message.objects.get().pk)
