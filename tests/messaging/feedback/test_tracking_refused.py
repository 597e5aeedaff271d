"""Opens and clicks of our own links that are early, forged, too late or another's."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import OperationalError, connection, connections

from messaging.content import tracked_links
from messaging.delivery import claims, deliver
from messaging.feedback import receipts, tracking
from messaging.models import Hit
from messaging.pages.tracking_views import GIF
from rme.cells import placements
from rme.core import ids
from rme.tenants.models import Placement
from rme.transport import Transport
from tests import factories
from tests.messaging.feedback.tracking_scene import GMAIL, OWN, TARGET, get, image, link, sent
from tests.rest import events, message, work
from tests.sending import PROCESS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_links")]


@pytest.mark.django_db(transaction=True)
def test_an_open_before_the_outcome_is_retried(org, api, mail_scene):
    message_id = api.send(message(mail_scene.person(), **OWN)).json()["messageId"]
    claim = claims.claim(org.pk, "EMAIL", 0)
    made = {}

    class Early(Transport):
        """A transport by which the mail is opened before the service has answered."""

        def for_worker(self, number, **_):
            return self

        def perform(self, requests, report=None):
            get(image(), GMAIL)
            made["applied"] = tracking.apply_due()
            connections.close_all()
            return mail_scene.transport.perform(requests)

    deliver.deliver([claim], Early(), PROCESS, receipts.apply)
    assert made == {"applied": 1}
    assert events(message_id) == ["accepted", "sent"]
    assert tracking.apply_due() == 0  # put off for some seconds
    Hit.objects.update(due_at=datetime.now(UTC) - timedelta(seconds=1))
    assert tracking.apply_due() == 1
    assert events(message_id) == ["accepted", "sent", "delivered", "open"]


def test_without_the_database_links_still_redirect(sent_mail):
    url, picture = link(), image()

    def away(execute, sql, params, many, context):
        raise OperationalError

    with connection.execute_wrapper(away):
        assert get(url)["Location"] == TARGET
        assert get(picture).content == GIF
    assert not Hit.objects.exists()


def test_during_the_pause_of_a_move_links_still_redirect(org, sent_mail, settings):
    url, picture = link(), image()
    settings.CELL = "eu"
    place = Placement.objects.create(pk=org.pk, phase=Placement.Phase.PAUSED, cell="us")
    placements.forget()
    assert get(url)["Location"] == TARGET
    assert get(picture).content == GIF
    assert not Hit.objects.exists()
    place.phase = Placement.Phase.MOVED
    place.save()
    placements.forget()
    assert (get(url).status_code, get(url)["RME-Cell"]) == (421, "us")  # the other cell records it
    placements.forget()


@pytest.mark.parametrize("kind", ["o", "c"])
@pytest.mark.parametrize("token", ["x", "A" * 64, "%00", "é" * 50, "A" * 7000])
def test_a_forged_token_is_not_found(db, kind, token):
    response = get(f"/t/{kind}/{token}")
    assert (response.status_code, response.content) == (404, b"")
    assert "Location" not in response


def test_a_token_of_another_kind_is_not_found(sent_mail):
    assert get(link().replace("/t/c/", "/t/o/")).status_code == 404
    assert get(image().replace("/t/o/", "/t/c/")).status_code == 404


@pytest.mark.promise("events-3")
def test_a_redirect_goes_only_to_the_signed_url(sent_mail):
    for more in ("?url=https://evil.example", "?next=//evil.example", "#//evil.example"):
        assert get(link() + more)["Location"] == TARGET
    assert get(link() + "/https://evil.example").status_code == 404


def test_an_old_message_is_not_tracked(sent_mail, settings):
    long_ago = datetime.now(UTC) - timedelta(days=settings.MESSAGE_RETENTION_DAYS + 1)
    gone = ids.at_least(long_ago)
    assert get(tracked_links.open_url(gone)).content == GIF
    assert get(tracked_links.click_url(gone, TARGET)).status_code == 404
    assert not Hit.objects.exists()


def test_a_deleted_delivery_redirects_and_is_not_tracked(db):
    assert get(tracked_links.click_url(ids.new_id(), TARGET))["Location"] == TARGET
    assert not Hit.objects.exists()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_other_methods_are_not_allowed(sent_mail, method):
    assert get(link(), method=method).status_code == 405


def test_applied_hits_are_purged(sent_mail):
    get(image())
    tracking.purge()
    assert Hit.objects.count() == 1
    Hit.objects.update(at=datetime.now(UTC) - timedelta(days=8))
    tracking.purge()
    assert Hit.objects.count() == 0


def test_a_hit_carries_its_organization(sent_mail, org):
    get(image())
    assert Hit.objects.get().organization_id == org.pk


def test_a_unicode_url_is_sent_as_a_uri(sent_mail):
    assert get(link("https://x.example/ü?q=ß"))["Location"] == ("https://x.example/%C3%BC?q=%C3%9F")


def test_a_delivery_of_another_channel_is_not_tracked(org, api):
    api.send(message(factories.contact(org), channel="SMS"))
    work()
    sent()
    get(image())
    assert not Hit.objects.exists()
