"""The preference page: what it shows, what a change records, what it lifts."""

import re

import pytest
from django.test import Client

from messaging.consent import ledger
from messaging.links import PreferenceLink
from messaging.models import Category, ConsentEntry, Suppression
from messaging.pages.preference_changes import ChangeResult
from messaging.pages.wording import LANGUAGES
from tests import factories

pytestmark = pytest.mark.django_db
NEWS_MAIL, NEWS_SMS = "MARKETING.EMAIL", "MARKETING.SMS"
SERVICE_MAIL, SERVICE_SMS = "TRANSACTIONAL.EMAIL", "TRANSACTIONAL.SMS"
IN, OUT = "OPTED_IN", "OPTED_OUT"


@pytest.fixture
def person(org):
    return factories.contact(org)


@pytest.fixture
def path(org, person):
    return f"/p/{PreferenceLink(org.pk, str(person.pk), 'EMAIL', 'MARKETING').token}"


def boxes(path):
    """Return what the page shows: each box, and whether it is ticked."""
    page = Client().get(path).content.decode()
    found = re.findall(r'name="want" value="([A-Z_.]+)"( checked)?', page)
    return {value: bool(checked) for value, checked in found}


def submit(path, *want, shown=None, **headers):
    """Send the form as the page showed it, with exactly these boxes ticked."""
    shown = boxes(path) if shown is None else shown
    form = {
        "want": want,
        "on": [value for value, on in shown.items() if on],
        "off": [value for value, on in shown.items() if not on],
    }
    return Client().post(path, form, headers=headers)


def recorded_entries():
    rows = ConsentEntry.objects.order_by("id")
    return list(rows.values_list("category", "channel", "status", "source"))


def record(org, person, *entries):
    ledger.record(
        org.pk,
        [
            ledger.ConsentDecision(str(person.pk), channel, category, status, "API", None)
            for channel, category, status in entries
        ],
    )


def suppress(org, reason="COMPLAINT", **named):
    return Suppression.objects.create(organization=org, reason=reason, **named)


def test_page_shows_the_current_preferences(org, person, path):
    Category.objects.create(organization=org, name="EVENT_NEWS")
    factories.device(org, person)
    record(org, person, ("SMS", "MARKETING", IN), ("EMAIL", "TRANSACTIONAL", OUT))
    assert boxes(path) == {
        "EVENT_NEWS.EMAIL": False,
        "EVENT_NEWS.SMS": False,
        "EVENT_NEWS.PUSH": False,
        "MARKETING.EMAIL": False,
        "MARKETING.SMS": True,
        "MARKETING.PUSH": False,
        "TRANSACTIONAL.EMAIL": False,
        "TRANSACTIONAL.SMS": True,
        "TRANSACTIONAL.PUSH": True,
    }
    assert "<legend>Event news</legend>" in Client().get(path).content.decode()


def test_channels_without_an_address_are_not_shown(org):
    silent = factories.contact(org, email="", mobile="")
    path = f"/p/{PreferenceLink(org.pk, str(silent.pk), 'EMAIL', 'MARKETING').token}"
    page = Client().get(path)
    assert boxes(path) == {}
    assert "Acme has no address of yours to write to." in page.content.decode()


@pytest.mark.parametrize("more", [0, 5])
def test_statements_do_not_grow_with_categories(org, path, more, django_assert_num_queries):
    Category.objects.bulk_create(
        Category(organization=org, name="C" * n) for n in range(1, more + 1)
    )
    Client().get(path)
    # contact, devices, by index, consent, suppressions
    with django_assert_num_queries(5):
        assert len(boxes(path)) == 2 * (2 + more)


def test_a_change_is_recorded_with_its_evidence(org, person, path):
    headers = {"User-Agent": "Browser/1", "Accept-Language": "de-CH,de;q=0.9"}
    response = submit(path, NEWS_MAIL, SERVICE_MAIL, **headers)
    assert response.status_code == 303
    assert response["Location"] == f"{path}?lang=de&done=saved#result"
    assert recorded_entries() == [
        ("TRANSACTIONAL", "SMS", OUT, "PREFERENCE_PAGE"),
        ("MARKETING", "EMAIL", IN, "PREFERENCE_PAGE"),
    ]
    row = ConsentEntry.objects.last()
    assert (row.contact_id, row.recorded_by) == (str(person.pk), "recipient")
    assert row.evidence == {
        "form": "preferences",
        "ip": "127.0.0.1",
        "userAgent": "Browser/1",
        "language": "de-CH,de;q=0.9",
    }
    assert boxes(path) == {
        NEWS_MAIL: True, NEWS_SMS: False, SERVICE_MAIL: True, SERVICE_SMS: False,
    }  # fmt: skip
    assert ledger.verify(org.pk).broken is None


def test_unchanged_form_records_nothing(path):
    response = submit(path, SERVICE_MAIL, SERVICE_SMS)
    assert response["Location"] == f"{path}?lang=en&done=unchanged#result"
    assert recorded_entries() == []


def test_concurrent_change_is_not_undone(org, person, path):
    shown = boxes(path)
    record(org, person, ("SMS", "MARKETING", IN))
    submit(path, SERVICE_MAIL, SERVICE_SMS, NEWS_MAIL, shown=shown)
    assert boxes(path)[NEWS_SMS] is True
    assert recorded_entries()[1:] == [("MARKETING", "EMAIL", IN, "PREFERENCE_PAGE")]


def test_stop_all_is_recorded_and_can_be_reversed(org, person, path):
    record(org, person, ("EMAIL", "MARKETING", IN))
    response = Client().post(path, {"stop": "1"})
    assert response["Location"] == f"{path}?lang=en&done=stopped#result"
    assert set(boxes(path).values()) == {False}
    assert recorded_entries()[1:] == [("ALL", "ALL", OUT, "PREFERENCE_PAGE")]
    submit(path, NEWS_MAIL)
    assert [value for value, on in boxes(path).items() if on] == [NEWS_MAIL]


def test_an_invalid_form_changes_nothing(path):
    form = {"want": ["GONE.EMAIL", "x", "MARKETING.FAX", "\x00"], "off": ["GONE.EMAIL", "x", ""]}
    assert Client().post(path, form).status_code == 303
    assert recorded_entries() == []


@pytest.mark.promise("suppressions-13")
@pytest.mark.parametrize("reason", ["COMPLAINT", "STOP", "UNSUBSCRIBE"])
@pytest.mark.parametrize("channel", ["EMAIL", "ALL"])
def test_opting_in_lifts_a_suppression_by_the_recipient(org, person, path, reason, channel):
    suppress(org, reason, channel=channel, address="ada@simulator.rme.test")
    assert [value for value, on in boxes(path).items() if on] == [SERVICE_SMS]
    submit(path, NEWS_MAIL, SERVICE_SMS)
    assert not Suppression.objects.exists()
    # Service messages by email were shown as off, and stay so.
    assert recorded_entries() == [
        ("TRANSACTIONAL", "EMAIL", OUT, "PREFERENCE_PAGE"),
        ("MARKETING", "EMAIL", IN, "PREFERENCE_PAGE"),
    ]
    assert [value for value, on in boxes(path).items() if on] == [NEWS_MAIL, SERVICE_SMS]


def test_channel_still_suppressed_gets_no_opt_out(org, person, path):
    suppress(org, "STOP", channel="SMS", address="+12125550100")
    suppress(org, channel="EMAIL", address="ada@simulator.rme.test")
    submit(path, NEWS_MAIL, SERVICE_MAIL)
    assert list(Suppression.objects.values_list("channel", flat=True)) == ["SMS"]
    assert recorded_entries() == [
        ("MARKETING", "EMAIL", IN, "PREFERENCE_PAGE"),
        ("TRANSACTIONAL", "EMAIL", IN, "PREFERENCE_PAGE"),
    ]
    submit(path, NEWS_MAIL, SERVICE_MAIL, SERVICE_SMS)
    assert not Suppression.objects.exists()


def test_lifting_all_channels_opens_no_other(org, person, path):
    suppress(org, "STOP", channel="ALL", contact_id=str(person.pk))
    assert set(boxes(path).values()) == {False}
    submit(path, SERVICE_MAIL)
    assert [value for value, on in boxes(path).items() if on] == [SERVICE_MAIL]


def test_a_suppression_of_one_channel_is_lifted(org, person, path):
    record(org, person, ("EMAIL", "MARKETING", IN))
    suppress(org, channel="EMAIL", contact_id=str(person.pk))
    submit(path, NEWS_MAIL, SERVICE_MAIL, SERVICE_SMS)
    assert {value for value, on in boxes(path).items() if on} == {
        NEWS_MAIL, SERVICE_MAIL, SERVICE_SMS,
    }  # fmt: skip


def test_other_suppressions_stay(org, person, path):
    stranger = factories.organization("other")
    kept = [
        suppress(org, "HARD_BOUNCE", channel="EMAIL", address="ada@simulator.rme.test"),
        suppress(org, "MANUAL", channel="EMAIL", contact_id=str(person.pk)),
        suppress(org, channel="EMAIL", address="bob@simulator.rme.test"),
        suppress(org, channel="SMS", contact_id=str(person.pk)),
        suppress(stranger, channel="EMAIL", address="ada@simulator.rme.test"),
        suppress(stranger, channel="EMAIL", contact_id=str(person.pk)),
    ]
    submit(path, NEWS_MAIL)
    assert set(Suppression.objects.values_list("pk", flat=True)) == {row.pk for row in kept}


@pytest.mark.parametrize(
    ("query", "header", "own", "expected"),
    [
        ("?lang=it", "de", "fr_CH", "it"),
        ("?lang=xx", "de", "fr_CH", "de"),
        ("", "ja, es;q=0.4, fr-CA;q=0.8", "it", "fr"),
        ("", "de;q=0, *;q=x, ;q=0.1", "it_CH", "it"),
        ("", "", "es", "es"),
        ("", "", "pt_BR", "en"),
    ],
)
def test_languages(org, path, query, header, own, expected):
    type(org).objects.filter(pk=org.pk).update(language=own)
    page = Client().get(path + query, headers={"Accept-Language": header}).content.decode()
    assert f'<html lang="{expected}">' in page
    assert f"<h1>{LANGUAGES[expected].heading}</h1>" in page


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("done", ChangeResult)
def test_every_result_has_a_text_in_every_language(path, language, done):
    page = Client().get(f"{path}?lang={language}&done={done}").content.decode()
    text = getattr(LANGUAGES[language], done.value).format(organization="Acme")
    assert f'tabindex="-1">{text}</div>' in page.replace("&#x27;", "'")


@pytest.mark.parametrize("color", ["#ffee00", "#000000", "#1f4e79", "x} body { display: none"])
def test_the_organizations_color_is_readable(org, path, color):
    type(org).objects.filter(pk=org.pk).update(brand_color=color[:7])
    page = Client().get(path).content.decode()
    style = re.search(r"--brand: (\S+); --on-brand: (\S+); --brand-ink: (\S+);", page)
    assert style.groups() == {
        "#ffee00": ("#ffee00", "#1b1b1b", "#1b1b1b"),
        "#000000": ("#000000", "#ffffff", "#000000"),
    }.get(color, ("#1f4e79", "#ffffff", "#1f4e79"))


def test_names_are_text(org, path):
    type(org).objects.filter(pk=org.pk).update(name="<b>{0} & {organization}")
    page = Client().get(path).content.decode()
    assert "Choose what &lt;b&gt;{0} &amp; {organization} may send you" in page


def test_the_page_sends_no_referrer(path):
    page = Client().get(path)
    assert page["Cache-Control"] == "no-store"
    assert page["Referrer-Policy"] == "no-referrer"
    assert page["X-Robots-Tag"] == "noindex"
    assert page.cookies == {}
    policy = dict(part.split(" ", 1) for part in page["Content-Security-Policy"].split("; "))
    nonce = re.search(r'<style nonce="([^"]+)">', page.content.decode()).group(1)
    assert policy["script-src"] == "'none'"
    assert policy["style-src"] == f"'self' 'nonce-{nonce}'"
    assert policy["frame-ancestors"] == "'none'"
    assert "<script" not in page.content.decode()


def test_other_methods_are_refused(path):
    for method in ("put", "delete", "patch"):
        assert getattr(Client(), method)(path).status_code == 405
