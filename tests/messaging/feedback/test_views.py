"""The way in for providers: who may call, what is kept, and what is answered."""

import pytest
from django.db import OperationalError, connection
from django.test import Client

from messaging import providers
from messaging.domain.statuses import EventType
from messaging.feedback import callbacks, views
from messaging.feedback.tasks import apply_callbacks
from messaging.models import Callback, ProviderAccount
from messaging.providers.twilio import Twilio
from rme.core import ids
from rme.core.cache import TtlCache
from rme.core.db import clock
from rme.core.provider import DeliveryReceipt
from rme.core.redis.connection import redis_client
from tests import factories
from tests.fakes import providers as fakes
from tests.fakes.providers import SECRET, SETTINGS, Call
from tests.messaging.feedback.sms_scene import Scene, attempt, post, settle, state

pytestmark = pytest.mark.django_db
KINDS = sorted(SETTINGS)


def delivered(scene, attempt_id=None):
    return fakes.report(scene.kind, scene.url, attempt_id or ids.new_id(), "delivered")


@pytest.mark.parametrize("kind", KINDS)
def test_a_signed_callback_is_stored_once_and_requests_a_worker(org, redis, kind):
    with Scene(org, kind) as scene:
        call = delivered(scene)
        assert [scene.call(call) for _ in range(10)] == [200] * 10
    row = Callback.objects.get()
    assert (row.organization_id, row.account_id, row.method, bytes(row.body)) == (
        org.pk,
        scene.account.pk,
        call.method,
        call.body,
    )
    assert redis_client().exists("rme:wakeup:callbacks")


@pytest.mark.parametrize("kind", KINDS)
def test_an_unsigned_callback_is_refused_and_not_stored(org, kind):
    with Scene(org, kind) as scene:
        call = delivered(scene)
        assert scene.call(Call(call.method, "status=1", {}, call.body)) == 403
    assert not Callback.objects.exists()


@pytest.mark.parametrize(
    "name", ["0", "x" * 500, "%00", "01a1fe52-0000-7000-8000-000000000000", "..", "é"]
)
def test_an_unknown_account_is_not_found(org, name):
    assert post(name, Call("POST")) == 404


def test_another_accounts_signature_is_refused(org, scene):
    other = factories.organization("other")
    with Scene(other, "twilio") as theirs:
        assert post(scene.account.public_id, delivered(theirs)) == 403


@pytest.mark.parametrize("kind", ["smtp", "simulator"])
def test_a_provider_without_callbacks_is_refused(org, kind):
    row = ProviderAccount.objects.create(
        organization=org, name="x", kind=kind, channel="EMAIL", credentials='{"host": "x.example"}'
    )
    if kind == "simulator":
        ProviderAccount.objects.filter(pk=row.pk).update(credentials="{}")
        row.credentials = "{}"
        row.save()
    assert post(row.public_id, Call("POST")) == 403


def test_an_account_with_invalid_settings_is_not_found(org, scene):
    scene.account.credentials = "{}"
    scene.account.save()
    TtlCache.clear_all()
    assert scene.call(Call("POST")) == 404


def test_a_paused_account_receives_callbacks(org, scene):
    ProviderAccount.objects.update(state="PAUSED")
    TtlCache.clear_all()
    assert scene.call(delivered(scene)) == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "HEAD", "OPTIONS", "BREW"])
def test_other_methods_are_not_allowed(org, scene, method):
    response = Client().generic(method, f"/hooks/{scene.account.public_id}")
    assert (response.status_code, response["Allow"]) == (405, "GET, POST")


def test_too_long_body_is_rejected(org, scene):
    assert scene.call(Call("POST", "", {}, b"x" * (views.LIMIT + 1))) == 413
    assert scene.call(Call("POST", "", {}, b"x" * views.LIMIT)) == 403


@pytest.mark.parametrize("length", ["abc", "-1", "9" * 30])
def test_an_invalid_content_length_is_no_server_error(org, scene, length):
    response = Client().post(f"/hooks/{scene.account.public_id}", CONTENT_LENGTH=length)
    assert response.status_code in (403, 413)


def test_without_the_database_the_provider_is_asked_to_retry(org, scene):
    call = delivered(scene)

    def away(execute, sql, params, many, context):
        raise OperationalError

    with connection.execute_wrapper(away):
        response = Client().generic(
            "POST",
            f"/hooks/{scene.account.public_id}?{call.query}",
            call.body,
            fakes.FORM,
            headers=call.headers,
        )
    assert (response.status_code, response["Retry-After"]) == (503, "5")


def test_without_redis_a_callback_is_stored(org, scene, settings):
    call = delivered(scene)
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    redis_client.cache_clear()
    try:
        assert scene.call(call) == 200
    finally:
        redis_client.cache_clear()
    assert Callback.objects.count() == 1


def test_no_secret_is_stored(org):
    with Scene(org, "http_sms") as scene:
        assert scene.call(Call("GET", f"from=1&key={SECRET}&text=a".replace(" ", "%20"))) == 200
    assert Callback.objects.get().query == "from=1&key=&text=a"


def test_a_receipt_for_an_unknown_attempt_is_answered_and_dropped(org, scene):
    assert scene.call(delivered(scene)) == 200
    assert (settle(), settle()) == (1, 0)


class Stumbling(Twilio):
    """A provider with a fault of ours."""

    kind = "stumbling"

    def read_callback(self, callback):
        raise KeyError("MessageStatus")


def test_an_unreadable_callback_delays_no_other(org, api, scene):
    scene.send(api, factories.contact(org))
    scene.call(delivered(scene, attempt()))
    providers.REGISTRY["stumbling"] = Stumbling
    try:
        with Scene(org, "twilio", name="other") as other:
            other.call(delivered(other))
            ProviderAccount.objects.filter(pk=other.account.pk).update(kind="stumbling")
            assert settle() == 2
    finally:
        del providers.REGISTRY["stumbling"]
    assert state() == "DELIVERED"
    assert set(Callback.objects.values_list("due_at", flat=True)) == {None}


class Misreporting(Twilio):
    """A provider whose receipts make our code fail once they are applied."""

    kind = "misreporting"

    def read_callback(self, callback):
        return [DeliveryReceipt("no id", EventType.DELIVERED)]


def test_callback_that_fails_is_put_off_and_its_batch_is_applied(org, api, scene):
    scene.send(api, factories.contact(org))
    providers.REGISTRY["misreporting"] = Misreporting
    try:
        with Scene(org, "twilio", name="other") as other:
            for _ in range(2):
                other.call(delivered(other, ids.new_id()))
            ProviderAccount.objects.filter(pk=other.account.pk).update(kind="misreporting")
            scene.call(delivered(scene, attempt()))
            apply_callbacks()
    finally:
        del providers.REGISTRY["misreporting"]
    assert state() == "DELIVERED"
    put_off = Callback.objects.filter(due_at__gt=clock.now(), tries=1)
    assert (put_off.count(), Callback.objects.filter(due_at=None).count()) == (2, 1)


def test_old_callbacks_are_deleted_and_due_ones_are_not(org, scene):
    for _ in range(3):
        scene.call(delivered(scene))
    Callback.objects.update(tries=callbacks.UNKNOWN_TRIES)
    settle()
    scene.call(delivered(scene))
    old = "now() - make_interval(days => 8)"
    first, second = Callback.objects.filter(due_at=None).values_list("pk", flat=True)[:2]
    waiting = Callback.objects.get(due_at__isnull=False).pk
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE messaging_callback SET received_at = {old} WHERE id = ANY(%s)",
            [[first, waiting]],
        )
    callbacks.purge()
    left = set(Callback.objects.values_list("pk", flat=True))
    assert (first in left, second in left, waiting in left, len(left)) == (False, True, True, 3)
