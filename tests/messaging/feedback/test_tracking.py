"""Opens and clicks of our own links: from the setting to the event, of people and of machines."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.consent import ledger
from messaging.content.tracked_links import CLICK
from messaging.feedback import tasks, tracking
from messaging.models import Delivery, Event, Hit, SendingRules
from messaging.pages.tracking_views import GIF
from messaging.policy import organization_policy
from rme.core.redis.connection import redis_client
from tests import factories
from tests.messaging.feedback.tracking_scene import (
    BROWSER,
    CONTENT,
    GMAIL,
    OWN,
    TARGET,
    get,
    image,
    link,
    sent,
)
from tests.rest import events, message

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_links")]
HEADERS = {
    "Cache-Control": "no-store, private",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex",
}


def track(org, **fields):
    SendingRules.objects.create(organization=org, **fields)
    organization_policy.forget(org.pk)


def happened(message_id):
    """Return the opens and clicks that the API shows: (type, detail)."""
    rows = Event.objects.filter(message_id=message_id, type__in=["open", "click"]).order_by("id")
    return list(rows.values_list("type", "detail"))


def test_tracking_is_off_by_default(org, api, mail_scene):
    mail_scene.send(api, **OWN)
    assert mail_scene.last_request()["HtmlBody"] == CONTENT["html"]


def test_only_the_html_is_tracked(org, api, mail_scene):
    track(org, track_opens=True, track_clicks=True)
    mail_scene.send(api, **OWN)
    sent = mail_scene.last_request()
    assert sent["TextBody"] == CONTENT["text"]
    leads = f'<a href="{link()}">x</a>'
    shown = f'<img src="{image()}" width="1" height="1" alt="" border="0">'
    assert sent["HtmlBody"] == f"<body>{leads}{shown}</body>"


@pytest.mark.parametrize(
    ("fields", "found"),
    [({"track_opens": True}, ["/t/o/"]), ({"track_clicks": True}, ["/t/c/"])],
    ids=["opens", "clicks"],
)
def test_opens_and_clicks_are_set_separately(org, api, mail_scene, fields, found):
    track(org, **fields)
    mail_scene.send(api, **OWN)
    assert re.findall(r"/t/[oc]/", mail_scene.last_request()["HtmlBody"]) == found


def test_links_to_recipient_pages_are_not_tracked(org, api, mail_scene):
    track(org, track_clicks=True)
    html = '<a href="{{ unsubscribe_url }}">no more</a><a href="https://x.example">x</a>'
    factories.template(org, name="news", html=html, category="MARKETING", text="")
    person = mail_scene.person()
    ledger.record(
        org.pk,
        [ledger.ConsentDecision(str(person.pk), "EMAIL", "MARKETING", "OPTED_IN", "API", None)],
    )
    template = {"name": "news", "language": "en_US"}
    mail_scene.send(api, person, template=template, category="MARKETING")
    sent = mail_scene.last_request()
    assert re.findall(r'href="http://testserver(/[a-z]/)', sent["HtmlBody"]) == ["/p/", "/t/"]
    assert "/t/" not in sent["TextBody"]
    assert "https://x.example" in sent["TextBody"]
    headers = {each["Name"]: each["Value"] for each in sent["Headers"]}
    assert headers["List-Unsubscribe"].startswith("<http://testserver/p/u/")


def test_a_dry_run_tracks_nothing(org, api, mail_scene):
    track(org, track_opens=True, track_clicks=True)
    body = message(mail_scene.person(), **OWN)
    answer = api.call("POST", "/messages?dryRun=true", body).json()
    assert answer["recipients"][0]["content"]["html"] == CONTENT["html"]


def test_a_persons_open_is_an_event_and_a_delivery(sent_mail, api):
    response = get(image())
    assert (response.status_code, response["Content-Type"]) == (200, "image/gif")
    assert response.content == GIF
    assert {name: response[name] for name in HEADERS} == HEADERS
    assert redis_client().exists("rme:wakeup:callbacks")
    tasks.apply_callbacks()
    assert events(sent_mail) == ["accepted", "sent", "delivered", "open"]
    assert happened(sent_mail) == [("open", None)]
    assert api.get(sent_mail)["status"] == "DELIVERED"
    shown = api.get(sent_mail)["events"][-1]
    assert (shown["type"], shown["channel"], shown["provider"]) == ("open", "EMAIL", "postmark")
    assert "detail" not in shown or shown["detail"] is None


def test_a_persons_click_redirects(sent_mail):
    response = get(link())
    assert (response.status_code, response["Location"]) == (302, TARGET)
    assert {name: response[name] for name in HEADERS} == HEADERS
    assert not response.cookies
    tasks.apply_callbacks()
    assert happened(sent_mail) == [("click", None)]


@pytest.mark.promise("events-2")
@pytest.mark.parametrize("agent", [GMAIL, "Mozilla/5.0", "", "Barracuda Sentinel (EE)", "curl/8"])
def test_open_by_a_machine_is_marked(sent_mail, api, agent):
    get(image(), agent)
    get(link(), agent)
    tasks.apply_callbacks()
    assert happened(sent_mail) == [("open", {"machine": True}), ("click", {"machine": True})]
    shown = [e["detail"] for e in api.get(sent_mail)["events"] if e["type"] in ("open", "click")]
    assert shown == [{"machine": True}] * 2


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("HEAD", {}),
        ("GET", {"Sec-Purpose": "prefetch;prerender"}),
        ("GET", {"Purpose": "prefetch"}),
    ],
)
def test_a_prefetch_is_a_machines(sent_mail, method, headers):
    assert get(link(), BROWSER, method, **headers).status_code == 302
    assert get(image(), BROWSER, method, **headers).status_code == 200
    tasks.apply_callbacks()
    assert {detail["machine"] for _, detail in happened(sent_mail)} == {True}


@pytest.mark.promise("events-2")
@pytest.mark.parametrize(("seconds", "machine"), [(1, True), (3, False)])
def test_a_click_right_after_the_send_is_a_scanners(sent_mail, seconds, machine):
    sent(seconds)
    get(link())
    tasks.apply_callbacks()
    assert happened(sent_mail) == [("click", {"machine": True} if machine else None)]


def test_a_persons_open_after_a_machines_counts_and_not_the_reverse(sent_mail):
    for agent in (GMAIL, BROWSER, GMAIL, BROWSER):
        get(image(), agent)
        tasks.apply_callbacks()
    assert happened(sent_mail) == [("open", {"machine": True}), ("open", None)]
    get(link(), BROWSER)
    tasks.apply_callbacks()
    get(link(), GMAIL)
    tasks.apply_callbacks()
    assert happened(sent_mail)[2:] == [("click", None)]


def test_a_thousand_opens_are_one_row(sent_mail):
    for _ in range(20):
        get(image())
    assert Hit.objects.count() == 1
    tasks.apply_callbacks()
    get(image())
    assert (Hit.objects.count(), tracking.apply_due()) == (1, 0)


def test_storing_a_hit_is_one_statement(sent_mail):
    url = link()
    with CaptureQueriesContext(connection) as queries:
        get(url)
    assert len(queries) == 1


def test_statements_do_not_grow_with_the_hits(org, api, mail_scene):
    counts = []
    for people in (1, 5):
        for number in range(people):
            mail_scene.send(api, mail_scene.person(email=f"p{people}{number}@x.example"), **OWN)
        sent()
        for delivery in Delivery.objects.all():
            tracking.store(delivery.pk, CLICK, machine=False)
        with CaptureQueriesContext(connection) as queries:
            assert tracking.apply_due() == people
        counts.append(len(queries))
    assert counts[0] == counts[1]


@pytest.mark.promise("events-3")
def test_get_never_unsubscribes(sent_mail, api, org):
    get(link())
    get(image())
    tasks.apply_callbacks()
    assert "unsubscribed" not in events(sent_mail)
