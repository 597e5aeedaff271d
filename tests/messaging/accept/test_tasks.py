"""The periodic task of accept: it deletes idempotency keys that have expired."""

from datetime import UTC, datetime, timedelta

import pytest

from messaging.accept.tasks import purge_idempotency_keys
from messaging.models import IdempotencyKey
from tests import factories
from tests.rest import message

pytestmark = pytest.mark.django_db


def test_only_expired_keys_are_deleted(api, org):
    person = factories.contact(org)
    for key in ("expired", "live"):
        assert api.send(message(person), **{"Idempotency-Key": key}).status_code == 202
    expired = IdempotencyKey.objects.filter(key="expired")
    expired.update(expires_at=datetime.now(UTC) - timedelta(seconds=1))
    purge_idempotency_keys()
    assert list(IdempotencyKey.objects.values_list("key", flat=True)) == ["live"]
