"""Opens and clicks of our own links: from the setting to the event."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from messaging import claiming, consent, deliver, policy, receipts, tasks, tracked_links, tracking
from messaging.models import Delivery, Event, Hit, SendingRules
from messaging.tracked_links import CLICK
from messaging.views.tracking import GIF
from rme.core import bell, ids
from tests import factories
from tests.messaging.mail_scene import MailScene
from tests.rest import events, message, work

pytestmark = pytest.mark.django_db
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
GMAIL = "Mozilla/5.0 (Windows NT 5.1) Firefox/11.0 (via ggpht.com GoogleImageProxy)"
HTML = '<body><a href="https://x.example/?a=1&amp;b=2">x</a>{}</body>'
TARGET = "https://x.example/?a=1&b=2"
HEADERS = {
    "Cache-Control": "no-store, private",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex",
}


@pytest.fixture(autouse=True)
def _base_url(settings):
    settings.BASE_URL = "http://testserver"


@pytest.fixture
def scene(org):
    with MailScene(org) as made:
        yield made


def track(org, **fields):
    SendingRules.objects.create(organization=org, **fields)
    policy.forget(org.pk)


CONTENT = {"subject": "s", "text": "see https://x.example", "html": HTML.format("")}
OWN = {"template": None, "context": None, "content": CONTENT}


def sent(seconds=60):
    """Let so much time pass since emails left."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE messaging_attempt SET started_at = now() - make_interval(secs => %s)",
            [seconds],
        )


@pytest.fixture
def mail(org, api, scene):
    """Send an email a while ago, and give its message's id."""
    message_id = scene.send(api, **OWN)
    sent()
    return message_id


def get(url, agent=BROWSER, method="GET", **headers):
    path = url.removeprefix("http://testserver")
    given = {"User-Agent": agent, **headers}
    client = Client(enforce_csrf_checks=True, raise_request_exception=True)
    return client.generic(method, path, headers=given)


def image():
    return tracked_links.open_url(Delivery.objects.get().pk)


def link(url=TARGET):
    return tracked_links.click_url(Delivery.objects.get().pk, url)


def happened(message_id):
    """Give the opens and clicks that the API tells of: (type, detail)."""
    rows = Event.objects.filter(message_id=message_id, type__in=["open", "click"]).order_by("id")
    return list(rows.values_list("type", "detail"))


def test_it_is_off_until_it_is_wanted(org, api, scene):
    scene.send(api, **OWN)
    assert scene.said()["HtmlBody"] == CONTENT["html"]


def test_the_html_tells_and_the_text_does_not(org, api, scene):
    track(org, track_opens=True, track_clicks=True)
    scene.send(api, **OWN)
    said = scene.said()
    assert said["TextBody"] == CONTENT["text"]
    leads = f'<a href="{link()}">x</a>'
    shown = f'<img src="{image()}" width="1" height="1" alt="" border="0">'
    assert said["HtmlBody"] == f"<body>{leads}{shown}</body>"


@pytest.mark.parametrize(
    ("fields", "found"),
    [({"track_opens": True}, ["/t/o/"]), ({"track_clicks": True}, ["/t/c/"])],
    ids=["opens", "clicks"],
)
def test_each_is_a_setting_of_its_own(org, api, scene, fields, found):
    track(org, **fields)
    scene.send(api, **OWN)
    assert re.findall(r"/t/[oc]/", scene.said()["HtmlBody"]) == found


def test_links_to_the_recipients_own_pages_stay(org, api, scene):
    track(org, track_clicks=True)
    html = '<a href="{{ unsubscribe_url }}">no more</a><a href="https://x.example">x</a>'
    factories.template(org, name="news", html=html, category="MARKETING", text="")
    person = scene.person()
    consent.record(
        org.pk,
        [consent.Decision(str(person.pk), "EMAIL", "MARKETING", "OPTED_IN", "API", None)],
    )
    template = {"name": "news", "language": "en_US"}
    scene.send(api, person, template=template, category="MARKETING")
    said = scene.said()
    assert re.findall(r'href="http://testserver(/[a-z]/)', said["HtmlBody"]) == ["/p/", "/t/"]
    assert "/t/" not in said["TextBody"]
    assert "https://x.example" in said["TextBody"]
    headers = {each["Name"]: each["Value"] for each in said["Headers"]}
    assert headers["List-Unsubscribe"].startswith("<http://testserver/p/u/")


def test_a_dry_run_tells_nothing(org, api, scene):
    track(org, track_opens=True, track_clicks=True)
    body = message(scene.person(), **OWN)
    answer = api.call("POST", "/messages?dryRun=true", body).json()
    assert answer["recipients"][0]["content"]["html"] == CONTENT["html"]


def test_a_persons_open_is_an_event_and_a_delivery(mail, api):
    response = get(image())
    assert (response.status_code, response["Content-Type"]) == (200, "image/gif")
    assert response.content == GIF
    assert {name: response[name] for name in HEADERS} == HEADERS
    assert bell.client().exists("rme:bell:callbacks")
    tasks.apply_callbacks()
    assert events(mail) == ["accepted", "sent", "delivered", "open"]
    assert happened(mail) == [("open", None)]
    assert api.get(mail)["status"] == "DELIVERED"
    shown = api.get(mail)["events"][-1]
    assert (shown["type"], shown["channel"], shown["provider"]) == ("open", "EMAIL", "postmark")
    assert "detail" not in shown or shown["detail"] is None


def test_a_persons_click_leads_on(mail):
    response = get(link())
    assert (response.status_code, response["Location"]) == (302, TARGET)
    assert {name: response[name] for name in HEADERS} == HEADERS
    assert not response.cookies
    tasks.apply_callbacks()
    assert happened(mail) == [("click", None)]


@pytest.mark.parametrize("agent", [GMAIL, "Mozilla/5.0", "", "Barracuda Sentinel (EE)", "curl/8"])
def test_a_machine_is_told_as_one(mail, api, agent):
    get(image(), agent)
    get(link(), agent)
    tasks.apply_callbacks()
    assert happened(mail) == [("open", {"machine": True}), ("click", {"machine": True})]
    shown = [e["detail"] for e in api.get(mail)["events"] if e["type"] in ("open", "click")]
    assert shown == [{"machine": True}] * 2


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("HEAD", {}),
        ("GET", {"Sec-Purpose": "prefetch;prerender"}),
        ("GET", {"Purpose": "prefetch"}),
    ],
)
def test_a_request_that_nobody_looks_at_is_a_machines(mail, method, headers):
    assert get(link(), BROWSER, method, **headers).status_code == 302
    assert get(image(), BROWSER, method, **headers).status_code == 200
    tasks.apply_callbacks()
    assert {detail["machine"] for _, detail in happened(mail)} == {True}


@pytest.mark.parametrize(("seconds", "machine"), [(1, True), (3, False)])
def test_a_click_right_after_the_send_is_a_scanners(mail, seconds, machine):
    sent(seconds)
    get(link())
    tasks.apply_callbacks()
    assert happened(mail) == [("click", {"machine": True} if machine else None)]


def test_a_person_after_a_machine_is_news_and_not_the_other_way(mail):
    for agent in (GMAIL, BROWSER, GMAIL, BROWSER):
        get(image(), agent)
        tasks.apply_callbacks()
    assert happened(mail) == [("open", {"machine": True}), ("open", None)]
    get(link(), BROWSER)
    tasks.apply_callbacks()
    get(link(), GMAIL)
    tasks.apply_callbacks()
    assert happened(mail)[2:] == [("click", None)]


def test_a_thousand_opens_are_one_row(mail):
    for _ in range(20):
        get(image())
    assert Hit.objects.count() == 1
    tasks.apply_callbacks()
    get(image())
    assert (Hit.objects.count(), tracking.work()) == (1, 0)


def test_telling_is_one_statement(mail):
    url = link()
    with CaptureQueriesContext(connection) as queries:
        get(url)
    assert len(queries) == 1


def test_applying_takes_as_many_statements_whatever_there_is(org, api, scene):
    counts = []
    for people in (1, 5):
        for number in range(people):
            scene.send(api, scene.person(email=f"p{people}{number}@x.example"), **OWN)
        sent()
        for delivery in Delivery.objects.all():
            tracking.keep(delivery.pk, CLICK, machine=False)
        with CaptureQueriesContext(connection) as queries:
            assert tracking.work() == people
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_get_never_unsubscribes(mail, api, org):
    get(link())
    get(image())
    tasks.apply_callbacks()
    assert "unsubscribed" not in events(mail)


def test_what_comes_before_the_outcome_waits_for_it(org, api, scene):
    message_id = api.send(message(scene.person(), **OWN)).json()["messageId"]
    claim = claiming.claim(org.pk, "EMAIL", 0)
    made = {}

    class Early:
        """A transport by which the mail is opened before the service has answered."""

        def perform(self, requests):
            get(image(), GMAIL)
            made["applied"] = tracking.work()
            return scene.transport.perform(requests)

    receipts.apply(deliver.deliver(claim, Early()))
    assert made == {"applied": 1}
    assert events(message_id) == ["accepted", "sent"]
    assert tracking.work() == 0  # put off for some seconds
    Hit.objects.update(due_at=datetime.now(UTC) - timedelta(seconds=1))
    assert tracking.work() == 1
    assert events(message_id) == ["accepted", "sent", "delivered", "open"]


def test_without_the_database_people_still_get_where_they_want(mail):
    url, picture = link(), image()

    def away(execute, sql, params, many, context):
        raise OperationalError

    with connection.execute_wrapper(away):
        assert get(url)["Location"] == TARGET
        assert get(picture).content == GIF
    assert not Hit.objects.exists()


@pytest.mark.parametrize("kind", ["o", "c"])
@pytest.mark.parametrize("token", ["x", "A" * 64, "%00", "é" * 50, "A" * 7000])
def test_a_forged_token_leads_nowhere(db, kind, token):
    response = get(f"/t/{kind}/{token}")
    assert (response.status_code, response.content) == (404, b"")
    assert "Location" not in response


def test_a_token_of_another_kind_leads_nowhere(mail):
    assert get(link().replace("/t/c/", "/t/o/")).status_code == 404
    assert get(image().replace("/t/o/", "/t/c/")).status_code == 404


def test_nobody_can_make_us_redirect_elsewhere(mail):
    for more in ("?url=https://evil.example", "?next=//evil.example", "#//evil.example"):
        assert get(link() + more)["Location"] == TARGET
    assert get(link() + "/https://evil.example").status_code == 404


def test_what_is_too_old_tells_nothing(mail, settings):
    long_ago = datetime.now(UTC) - timedelta(days=settings.MESSAGE_RETENTION_DAYS + 1)
    gone = ids.at_least(long_ago)
    assert get(tracked_links.open_url(gone)).content == GIF
    assert get(tracked_links.click_url(gone, TARGET)).status_code == 404
    assert not Hit.objects.exists()


def test_a_delivery_that_is_not_there_leads_on_and_tells_nothing(db):
    assert get(tracked_links.click_url(ids.new_id(), TARGET))["Location"] == TARGET
    assert not Hit.objects.exists()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_other_methods_are_not_allowed(mail, method):
    assert get(link(), method=method).status_code == 405


def test_applied_hits_are_forgotten(mail):
    get(image())
    tracking.purge()
    assert Hit.objects.count() == 1
    Hit.objects.update(at=datetime.now(UTC) - timedelta(days=8))
    tracking.purge()
    assert Hit.objects.count() == 0


def test_a_hit_carries_its_organization(mail, org):
    get(image())
    assert Hit.objects.get().organization_id == org.pk


def test_a_unicode_address_is_written_as_an_uri(mail):
    assert get(link("https://x.example/ü?q=ß"))["Location"] == ("https://x.example/%C3%BC?q=%C3%9F")


def test_what_was_sent_by_another_channel_is_no_email(org, api):
    api.send(message(factories.contact(org), channel="SMS"))
    work()
    sent()
    get(image())
    assert not Hit.objects.exists()
