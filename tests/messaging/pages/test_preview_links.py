"""What people see of a message carries a link that shows the recipient's page and never acts."""

import re
from html import escape
from urllib.parse import quote

import orjson
import pytest
from django.core.management import call_command
from django.test import Client

from messaging import links
from messaging.consent import ledger
from messaging.links import BadLink, Confirmation, PreferenceLink
from messaging.models import ConsentEntry, Message, MessageContent, SendingRules
from messaging.pages.wording import LANGUAGES
from rme.tenants.models import Membership
from tests import factories
from tests.messaging.console.conftest import url
from tests.messaging.console.studio.scene import client_of, do, form
from tests.messaging.pages.test_preferences import NEWS_MAIL, SERVICE_MAIL, SERVICE_SMS, submit
from tests.rest import Api, message, work

pytestmark = pytest.mark.django_db
ONE_CLICK = {"List-Unsubscribe": "One-Click"}
LINK = re.compile(r"/p/(?:[uc]/)?[A-Za-z0-9._~-]{60,}[A-Za-z0-9_-]")
ENABLED = re.compile(r"<(?:button|input type=\"checkbox\")(?![^>]* disabled)[^>]*>")
TEXTS = {
    "subject": "{{ unsubscribe_url }}",
    "text": "Change: {{ unsubscribe_url }}",
    "html": "<a href='{{ unsubscribe_url }}'>Change</a>",
}


@pytest.fixture
def ada(org):
    person = factories.contact(org)
    yes = ledger.ConsentDecision(str(person.pk), "EMAIL", "MARKETING", "OPTED_IN", "API", None)
    ledger.record(org.pk, [yes])
    return person


@pytest.fixture
def news(org):
    return factories.template(org, name="news", category="MARKETING", **TEXTS)


def paths_in(text):
    """Return the paths of the links in a text, each once."""
    return sorted(set(LINK.findall(text)))


def assert_shows_and_never_acts(text):
    """Follow all links of a text, and post everything that a page of the recipient may post."""
    before = list(ConsentEntry.objects.values())
    paths = paths_in(text)
    assert paths
    for path in paths:
        shown = Client().get(path, headers={"Accept-Language": "en"})
        words = shown.content.decode()
        assert (shown.status_code, LANGUAGES["en"].preview in words) == (200, True)
        assert (
            re.findall(r"<(?:button|input type=\"checkbox\")(?![^>]* disabled)[^>]*>", words) == []
        )
        assert "Ada" not in words
        for body in (ONE_CLICK, {"unsubscribe": "1"}, {"stop": "1"}, {"off": NEWS_MAIL}, {}):
            refused = Client().post(path, body, headers={"Accept-Language": "en"})
            assert refused.status_code == 403
            assert LANGUAGES["en"].preview_unchanged in refused.content.decode()
    assert list(ConsentEntry.objects.values()) == before


def test_the_studio_preview_of_a_contact(org, ada, news):
    client = client_of(Client, org, "eve", Membership.Role.VIEWER)
    fields = form(news, **TEXTS, contact=ada.pk)
    answer = client.post(url("template_preview", "news"), fields)
    assert answer.status_code == 200
    assert_shows_and_never_acts(answer.content.decode())
    frame = client.post(url("template_frame", "news"), fields)
    assert frame.status_code == 200
    assert_shows_and_never_acts(frame.content.decode())


def test_rest_render(api, ada, news):
    answer = api.call("POST", "/templates/news/render", {"contactId": str(ada.pk)})
    assert answer.status_code == 200
    assert len(paths_in(answer.content.decode())) == 1
    assert_shows_and_never_acts(answer.content.decode())


def test_a_name_computed_at_render_time(api, org, ada):
    factories.template(org, name="odd", text="{% assign n = 'unsubscribe_url' %}{{ [n] }}")
    answer = api.call("POST", "/templates/odd/render", {"contactId": str(ada.pk)})
    assert_shows_and_never_acts(answer.content.decode())


@pytest.mark.parametrize("channel", ["EMAIL", "SMS", "PUSH"])
def test_a_dry_run_and_the_page_of_a_message(api, org, ada, root, channel, handed):
    factories.device(org, ada)
    text = {"EMAIL": TEXTS, "SMS": {"text": TEXTS["text"]}, "PUSH": {"body": TEXTS["text"]}}
    factories.template(org, channel, name="note", **text[channel])
    body = message(ada, template={"name": "note", "language": "en_US"}, channel=channel)
    dry = api.call("POST", "/messages?dryRun=true", body)
    assert dry.status_code == 200
    assert_shows_and_never_acts(dry.content.decode())

    assert api.send(body).status_code == 202
    work()
    if channel != "PUSH":  # which goes to a provider of its own
        (sent,) = handed
        live = sent.text.rpartition("/")[2].strip()
        assert links.read(live).contact_id == str(ada.pk)
    shown = root.get(url("message", Message.objects.get().pk)).content.decode()
    if channel == "EMAIL":
        shown += root.get(url("html", Message.objects.get().pk, 0)).content.decode()
    assert_shows_and_never_acts(shown)
    if channel == "SMS":  # so that the size of the SMS is right
        assert {len(path.rpartition("/")[2]) for path in paths_in(shown)} == {len(live)}


def test_a_test_send_of_the_studio(org, ada, news, handed):
    editor = client_of(Client, org, "eve", Membership.Role.TEMPLATE_EDITOR)
    factories.contact(org, email=editor.user.email)
    do(editor, "test", news, publish=False)
    work()
    (mail,) = handed
    assert_shows_and_never_acts(f"{mail.subject} {mail.text} {mail.html}")


def test_the_stored_confirmation_of_a_double_opt_in(org, root, handed):
    SendingRules.objects.create(organization=org, double_opt_in=True)
    ada = factories.contact(org)
    link = PreferenceLink(org.pk, str(ada.pk), "EMAIL", "MARKETING")
    submit(f"/p/{link.token}", NEWS_MAIL, SERVICE_MAIL, SERVICE_SMS)
    work()
    (mail,) = handed
    (live,) = paths_in(mail.text)
    assert links.read_confirmation(live.rpartition("/")[2]) == Confirmation(link, ("MARKETING",))

    sent = Message.objects.get()
    seen = {
        "message": root.get(url("message", sent.pk)),
        "html": root.get(url("html", sent.pk, 0)),
        "record": root.get(url("message_record", sent.pk)),
    }
    shown = {name: answer.content.decode() for name, answer in seen.items()}
    for text in shown.values():
        assert live not in text
        assert_shows_and_never_acts(text)
    assert ConsentEntry.objects.filter(source="DOUBLE_OPT_IN").count() == 0
    Client().post(live)
    assert ConsentEntry.objects.filter(source="DOUBLE_OPT_IN").count() == 1


def test_the_export_of_a_person_and_the_list_of_messages(org, ada, root, tmp_path):
    link = PreferenceLink(org.pk, str(ada.pk), "EMAIL", "MARKETING")
    confirmation = Confirmation(link, ("MARKETING",))
    text = f"{links.preferences_url(link.token)}. {links.confirmation_url(confirmation.token)}!"
    sent = Api(org).send(message(ada, template=None, content={"subject": text, "text": text}))
    assert sent.status_code == 202
    call_command("export_contact", str(ada.pk), organization=org.pk, output=tmp_path / "ada.json")
    exported = (tmp_path / "ada.json").read_text()
    (found,) = orjson.loads(exported)["messages"]
    assert found["content"]["content"]["text"].endswith("!")
    listed = root.get(url("messages")).content.decode()
    for shown in (exported, listed):
        assert link.token[:50] not in shown
        assert confirmation.token[:50] not in shown
    assert_shows_and_never_acts(exported)
    assert link.token in MessageContent.objects.get().body["content"]["text"]


def test_preview_link_does_not_identify_the_recipient(org, ada):
    link = PreferenceLink(org.pk, str(ada.pk), "EMAIL", "MARKETING", "0199")
    with pytest.raises(BadLink):
        links.read(link.preview_token)
    with pytest.raises(BadLink):
        links.read_confirmation(link.preview_token)
    with pytest.raises(BadLink):
        links.read_preview(link.token)
    found = links.read_preview(link.preview_token)
    assert (found.organization_id, found.channel, found.category) == (org.pk, "EMAIL", "MARKETING")
    other = PreferenceLink(org.pk, "0" * len(str(ada.pk)), "EMAIL", "MARKETING")
    assert other.preview_token == link.preview_token


def test_foreign_links_stay_unchanged(org):
    text = "/p/x /p/" + "a" * 5000 + "." + "b" * 43 + " /p/u/abc." + "c" * 43
    assert links.preview_links(text) == text


def entities(text):
    """Write all signs of a text as HTML entities."""
    return re.sub(r"\W|_", lambda sign: f"&#{ord(sign[0])};", text)


ESCAPES = {
    "percent": lambda url: quote(url, safe=""),
    "lower case": lambda url: quote(url, safe="").replace("%2F", "%2f"),
    "percent twice": lambda url: quote(quote(url, safe=""), safe=""),
    "percent four times": lambda url: quote(quote(quote(quote(url, ""), ""), ""), ""),
    "every sign": lambda url: re.sub(r"\W|_", lambda sign: f"%{ord(sign[0]):02X}", url),
    "every character": lambda url: "".join(f"%{byte:02X}" for byte in url.encode()),
    "entities": entities,
    "hexadecimal entities": lambda url: "".join(f"&#x{byte:04x};" for byte in url.encode()),
    "named entities": lambda url: url.replace("/", "&sol;").replace(".", "&period;"),
    "percent, then entities": lambda url: entities(quote(url, safe="")),
    "entities, then percent": lambda url: quote(entities(url), safe=""),
    "escaped entities": lambda url: escape(escape(entities(url))),
    "JSON": lambda url: orjson.dumps(orjson.dumps(url).decode()).decode().replace("/", "\\/"),
    "token on a line of its own": lambda url: "\n" + url.rpartition("/")[2],
}
"""How a link may stand in a text."""


@pytest.mark.parametrize("name", ESCAPES)
def test_escaped_link_is_replaced_and_the_rest_of_the_text_stays(org, ada, name):
    link = PreferenceLink(org.pk, str(ada.pk), "EMAIL", "MARKETING")
    confirmation = Confirmation(link, ("MARKETING",))
    for url_of, token in (
        (links.preferences_url, link.token),
        (links.one_click_url, link.token),
        (links.confirmation_url, confirmation.token),
    ):
        hidden = ESCAPES[name](url_of(token))
        shown = ESCAPES[name](url_of(link.preview_token))
        before, after = "100% &amp; <a href='https://r.example/?u=", "&amp;x=%2F'>a</a> &eacute;%C3"
        replaced = links.preview_links(f"{before}{hidden}{after} {hidden}")
        assert replaced.startswith(before)
        assert replaced.count(after) == 1
        assert replaced.count(link.preview_token) == 2
        values = {"text": f"{before}{hidden}{after}", "list": [1, None, hidden]}
        found = links.preview_values(values)
        assert found["text"].count(link.preview_token) == 1
        assert found["text"].startswith(before)
        assert found["text"].endswith(after)
        assert found["list"][2].count(link.preview_token) == 1
        assert token not in replaced
        assert links.preview_links(shown) == shown


def test_pages_and_exports_show_no_escaped_link(org, ada, root, tmp_path):
    link = PreferenceLink(org.pk, str(ada.pk), "EMAIL", "MARKETING")
    token = Confirmation(link, ("MARKETING",)).token
    addresses = (links.preferences_url(link.token), links.confirmation_url(token))
    text = " ".join(f"https://r.example/?u={quote(quote(each, ''), '')}" for each in addresses)
    content = {"subject": text, "text": text, "html": f"<a href='{entities(text)}'>x</a>"}
    assert Api(org).send(message(ada, template=None, content=content)).status_code == 202
    call_command("export_contact", str(ada.pk), organization=org.pk, output=tmp_path / "ada.json")
    key = Message.objects.get().pk
    seen = {
        "list": root.get(url("messages")),
        "message": root.get(url("message", key)),
        "html": root.get(url("html", key, 0)),
        "record": root.get(url("message_record", key)),
    }
    assert {answer.status_code for answer in seen.values()} == {200}
    shown = {name: answer.content.decode() for name, answer in seen.items()}
    shown["export"] = (tmp_path / "ada.json").read_text()
    assert [name for name, words in shown.items() if link.token[:30] in words] == []
    assert [name for name, words in shown.items() if token[:30] in words] == []
    assert [name for name, words in shown.items() if link.preview_token[:30] not in words] == []
