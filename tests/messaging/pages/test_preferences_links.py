"""Links: signed, of no one else, good after a rotation; and unsubscribing by them."""

import pytest
from django.test import Client

from messaging import links
from messaging.consent import ledger
from messaging.links import BadLink, Confirmation, PreferenceLink
from messaging.models import ConsentEntry, Delivery
from messaging.pages.wording import LANGUAGES
from tests import factories
from tests.rest import message, work

pytestmark = pytest.mark.django_db
ONE_CLICK = {"List-Unsubscribe": "One-Click"}
FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def person(org):
    return factories.contact(org)


@pytest.fixture
def link(org, person):
    return PreferenceLink(org.pk, str(person.pk), "EMAIL", "MARKETING")


def recorded_entries():
    rows = ConsentEntry.objects.order_by("id")
    return list(rows.values_list("category", "channel", "status", "source"))


@pytest.mark.parametrize(
    "link",
    [
        PreferenceLink("acme", "a1", "EMAIL", "MARKETING", "0199"),
        PreferenceLink("acme", "0031:x/é ?#%", "SMS", "EVENT_NEWS"),
        PreferenceLink("acme", "a1", "EMAIL", ""),
    ],
)
def test_a_link_is_read_back(link):
    assert links.read(link.token) == link
    confirmation = Confirmation(link, ("MARKETING", "NEWS"))
    assert links.read_confirmation(confirmation.token) == confirmation
    assert set(link.token) <= set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."
    )


def test_a_link_outlives_the_rotation_of_keys(settings):
    settings.SECRET_KEY = "old"
    link = PreferenceLink("acme", "a1", "EMAIL", "MARKETING")
    token, confirmation = link.token, Confirmation(link, ("NEWS",)).token
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "new", ["old"]
    assert links.read(token) == link
    assert links.read_confirmation(confirmation).link == link
    settings.SECRET_KEY_FALLBACKS = []
    with pytest.raises(BadLink):
        links.read(token)


def forged(link):
    token = link.token
    text, _, signature = token.partition(".")
    stranger = PreferenceLink("other", link.contact_id, link.channel, link.category).token
    return [
        token[:-1],
        token[1:],
        text,
        token.swapcase(),
        f"{stranger.partition('.')[0]}.{signature}",
        "x",
        ".",
        "é%ff",
        "\x00",
        "a" * 5000,
    ]


def test_a_forged_link_shows_the_explanation(link):
    for token in forged(link):
        for path in (f"/p/{token}", f"/p/u/{token}", f"/p/c/{token}"):
            for response in (
                Client().get(path, headers={"Accept-Language": "de"}),
                Client().post(path, ONE_CLICK, headers={"Accept-Language": "de"}),
            ):
                assert response.status_code == 404, path
                assert LANGUAGES["de"].gone_heading in response.content.decode()
    assert recorded_entries() == []


def test_a_confirmation_is_no_link_to_preferences(link):
    token = Confirmation(link, ("MARKETING",)).token
    assert Client().get(f"/p/{token}").status_code == 404
    assert Client().post(f"/p/u/{token}", ONE_CLICK).status_code == 404


def test_a_link_of_a_deleted_contact_shows_the_explanation(org, person):
    stranger = factories.contact(factories.organization("other"))
    for link in (
        PreferenceLink("gone", str(person.pk), "EMAIL", "MARKETING"),
        PreferenceLink(org.pk, "gone", "EMAIL", "MARKETING"),
        PreferenceLink(org.pk, str(stranger.pk), "EMAIL", "MARKETING"),
    ):
        assert Client().get(f"/p/{link.token}").status_code == 404
        assert Client().post(f"/p/u/{link.token}", ONE_CLICK).status_code == 404
    assert recorded_entries() == []


@pytest.mark.promise("events-10")
def test_get_shows_a_button_and_changes_nothing(link):
    page = Client().get(f"/p/u/{link.token}?lang=en")
    assert page.status_code == 200
    assert "No more “News and offers” from Acme? This ends: Email." in page.content.decode()
    assert Client().head(f"/p/u/{link.token}").status_code == 200
    assert recorded_entries() == []


@pytest.mark.promise("events-10", "consent-14")
@pytest.mark.parametrize("multipart", [True, False])
def test_one_click_unsubscribes_without_log_in(link, multipart):
    strict = Client(enforce_csrf_checks=True, headers={"User-Agent": "Mailbox/2"})
    path = f"/p/u/{link.token}"
    for _ in range(2):  # mailboxes may repeat it
        if multipart:
            response = strict.post(path, ONE_CLICK)
        else:
            response = strict.post(path, "List-Unsubscribe=One-Click", FORM)
        assert response.status_code == 200
        assert response.cookies == {}
    assert recorded_entries() == [("MARKETING", "EMAIL", "OPTED_OUT", "ONE_CLICK")]
    assert ConsentEntry.objects.get().evidence == {
        "form": "List-Unsubscribe-Post",
        "ip": "127.0.0.1",
        "userAgent": "Mailbox/2",
    }


PARTS = (
    b'--x\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n'
    b"Content-Type: text/plain\r\n\r\nOne-Click\r\n\r\n--x--\r\n"
)


@pytest.mark.promise("events-10")
@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"List-Unsubscribe=One-Click\r\n", FORM),
        (b"List-Unsubscribe=One-Click\n", FORM),
        (b"\r\nList-Unsubscribe=One-Click \r\n\r\n", FORM),
        (b"List-Unsubscribe=One-Click%0D%0A", FORM),
        (b"list-unsubscribe=one-click", FORM),
        (b"List%2DUnsubscribe=One%2DClick&email=x", FORM),
        (b"List-Unsubscribe-Post: List-Unsubscribe=One-Click", FORM),
        (b"List-Unsubscribe=One-Click", f"{FORM}; charset=iso-8859-1"),
        (b"List-Unsubscribe=One-Click", ""),
        (b"List-Unsubscribe=One-Click", "text/plain"),
        (b"List-Unsubscribe=One-Click", "multipart/form-data"),
        (b'{"List-Unsubscribe": "One-Click"}', "application/json"),
        (PARTS, "multipart/form-data; boundary=x"),
        (PARTS, "multipart/form-data; boundary=y"),
        (PARTS.replace(b"\r\n", b"\n"), "multipart/form-data; boundary=x"),
    ],
)
def test_one_click_of_a_sloppy_mail_client_is_an_opt_out(link, body, content_type):
    response = Client().post(f"/p/u/{link.token}", body, content_type)
    assert response.status_code == 200
    assert recorded_entries() == [("MARKETING", "EMAIL", "OPTED_OUT", "ONE_CLICK")]


def test_the_button_unsubscribes_too(link):
    page = Client().post(f"/p/u/{link.token}", {"unsubscribe": "1"}, headers={"User-Agent": "B"})
    assert "You are unsubscribed from “News and offers” of Acme (Email)." in page.content.decode()
    assert recorded_entries() == [("MARKETING", "EMAIL", "OPTED_OUT", "PREFERENCE_PAGE")]


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"List-Unsubscribe=x", b"\xff\x00=%ff&%00", b"a" * 10_000),
        *(b"List-Unsubscribe=No&x=One-Click", b"My-List-Unsubscribe=One-Click"),
        *(b"List-Unsubscribe=One-Clicks", b"x=List-Unsubscribe&y=One-Click"),
    ],
)
def test_post_without_one_click_does_not_unsubscribe(link, body):
    assert Client().post(f"/p/u/{link.token}", body, FORM).status_code == 400
    assert recorded_entries() == []


def test_unsubscribing_by_a_new_link_after_opting_in_again(org, person, link):
    Client().post(f"/p/u/{link.token}", ONE_CLICK)
    again = ledger.ConsentDecision(str(person.pk), "EMAIL", "MARKETING", "OPTED_IN", "API", None)
    ledger.record(org.pk, [again])
    Client().post(f"/p/u/{link.token}", ONE_CLICK)
    assert [status for _, _, status, _ in recorded_entries()] == [
        "OPTED_OUT",
        "OPTED_IN",
        "OPTED_OUT",
    ]


def test_unsubscribing_adds_an_event_to_the_message(api, org, person):
    factories.template(org, name="news", category="MARKETING", text="{{ unsubscribe_url }}")
    yes = ledger.ConsentDecision(str(person.pk), "EMAIL", "MARKETING", "OPTED_IN", "API", None)
    ledger.record(org.pk, [yes])
    news = {"name": "news", "language": "en_US"}
    sent = api.send(message(person, category="MARKETING", template=news)).json()
    work()
    delivery_id = Delivery.objects.get(message_id=sent["messageId"]).pk
    link = PreferenceLink(org.pk, str(person.pk), "EMAIL", "MARKETING", str(delivery_id))
    for _ in range(2):
        Client().post(f"/p/u/{link.token}", ONE_CLICK)
    types = [event["type"] for event in api.get(sent["messageId"])["events"]]
    assert types == ["accepted", "sent", "delivered", "unsubscribed"]
    assert api.send(message(person, category="MARKETING", template=news)).status_code == 403
