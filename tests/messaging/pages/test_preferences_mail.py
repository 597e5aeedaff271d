"""What an email carries so that its reader can unsubscribe."""

import pytest

from messaging import links
from messaging.consent import ledger
from messaging.content import compose, templates
from messaging.content.outgoing import OutgoingRenderer
from messaging.domain.channels import Channel
from messaging.models import Category
from messaging.policy import organization_policy
from rme.crm.contacts import get_contacts
from rme.tenants import organizations
from tests import factories
from tests.rest import message, work

pytestmark = pytest.mark.django_db


def render_request(org, person, version=None, category=""):
    found = templates.load_versions(org.pk, [version.pk])[version.pk] if version else None
    return compose.RenderRequest(
        organization=organizations.get(org.pk),
        delivery_id="01a1fb37-a4a4-7470-9fc2-6927566e64b5",
        message_id="01a1fb37-a4a4-7470-9fc2-6927566e64b6",
        contact=get_contacts(org.pk, [str(person.pk)])[str(person.pk)],
        address="ada@simulator.rme.test",
        body={
            "sender": {"local_part": "news", "domain": "acme.example", "name": "Acme"},
            "content": {"subject": "News", "text": "There is some."},
        },
        template=found,
        policy=organization_policy.of(org.pk),
        category=category,
        is_outgoing=True,
    )


def composed(request):
    """Return what is sent for a request."""
    rendered = None
    if request.template:
        renderer = OutgoingRenderer()
        rendered = renderer.render(request.organization.id, request.template, request.context)
    channel = Channel(request.template.channel) if request.template else Channel.EMAIL
    (content,) = compose.composed(request, channel, [], rendered)
    return content


def link(org, person, category, channel="EMAIL"):
    delivery_id = "01a1fb37-a4a4-7470-9fc2-6927566e64b5"
    return links.PreferenceLink(org.pk, str(person.pk), channel, category, delivery_id)


@pytest.mark.promise("consent-13")
def test_marketing_carries_one_click_headers_and_the_page(org):
    person = factories.contact(org)
    text = {"subject": "N", "text": "Change: {{ unsubscribe_url }}"}
    version = factories.template(org, name="news", category="MARKETING", **text)
    mail = composed(render_request(org, person, version))
    token = link(org, person, "MARKETING").token
    assert mail.text.strip() == f"Change: http://127.0.0.1:8000/p/{token}"
    assert mail.headers == {
        "List-Unsubscribe": f"<http://127.0.0.1:8000/p/u/{token}>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    }


@pytest.mark.parametrize(
    ("category", "regime", "carried"), [("EVENTS", "OPT_IN", True), ("BILLS", "OPT_OUT", False)]
)
def test_the_regime_of_the_category_decides_the_headers(org, category, regime, carried):
    Category.objects.create(organization=org, name=category, regime=regime)
    mail = composed(render_request(org, factories.contact(org), category=category))
    assert ("List-Unsubscribe" in mail.headers) is carried


@pytest.mark.promise("consent-13")
def test_service_messages_have_no_unsubscribe_headers_and_may_link_to_the_page(org):
    person = factories.contact(org)
    version = factories.template(org, name="bill", text="{{ unsubscribe_url }}")
    mail = composed(render_request(org, person, version))
    assert mail.headers == {}
    token = link(org, person, "TRANSACTIONAL").token
    assert mail.text.strip() == f"http://127.0.0.1:8000/p/{token}"


def test_a_text_message_may_link_to_the_page(org):
    person = factories.contact(org)
    version = factories.template(org, "SMS", "news", text="{{ unsubscribe_url }}")
    sent = composed(render_request(org, person, version))
    token = link(org, person, "TRANSACTIONAL", "SMS").token
    assert sent.text == f"http://127.0.0.1:8000/p/{token}"


@pytest.mark.promise("templates-5")
def test_no_variable_replaces_the_preference_link(api, org, handed):
    person = factories.contact(org)
    factories.template(org, name="news", category="MARKETING", text="{{ unsubscribe_url }}")
    yes = ledger.ConsentDecision(str(person.pk), "EMAIL", "MARKETING", "OPTED_IN", "API", None)
    ledger.record(org.pk, [yes])
    api.send(
        message(
            person,
            category="MARKETING",
            template={"name": "news", "language": "en_US"},
            context={"variables": {"unsubscribe_url": "https://elsewhere.example"}},
        )
    )
    work()
    (mail,) = handed
    token = mail.headers["List-Unsubscribe"].removeprefix("<http://127.0.0.1:8000/p/u/")[:-1]
    assert mail.text.strip() == f"http://127.0.0.1:8000/p/{token}"
    assert links.read(token).contact_id == str(person.pk)


ENGLISH = "Unsubscribe or choose what you get"
GERMAN = "Abbestellen oder auswählen, was Sie erhalten"


def anchor(url, words=ENGLISH):
    return f'<p style="font-size:12px"><a href="{url}">{words}</a></p>'


@pytest.mark.promise("consent-13")
@pytest.mark.parametrize(
    ("content", "text", "html"),
    [
        ({"text": "Sale."}, "Sale.\n\n{words}: {url}\n", ""),
        ({"body": "Sale.\n\n"}, "Sale.\n\n{words}: {url}\n", ""),
        (
            {"html": "<p>Sale &amp; more</p>"},
            "Sale & more\n\n{words}: {url}\n",
            "<p>Sale &amp; more</p>{anchor}",
        ),
        (
            {"text": "Sale.", "html": "<html><body>Sale</BODY></html><!-- </body> -->"},
            "Sale.\n\n{words}: {url}\n",
            "<html><body>Sale{anchor}</BODY></html><!-- </body> -->",
        ),
        ({"text": "x", "html": "a<!-- </body> --> b"}, "x\n\n{words}: {url}\n",
         "a<!-- </body> --> b{anchor}"),
        ({"text": "x", "html": "a<html></html >"}, "x\n\n{words}: {url}\n",
         "a<html>{anchor}</html >"),
        ({"text": "x", "html": "a<!-- b"}, "x\n\n{words}: {url}\n", "a{anchor}<!-- b"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("language", "words"), [("de_CH", GERMAN), ("pl", ENGLISH)])
def test_literal_marketing_shows_the_page_in_each_part(org, content, text, html, language, words):
    person = factories.contact(org, language=language)
    request = render_request(org, person, category="MARKETING")
    request.body["content"] = {"subject": "News", **content}
    url = f"http://127.0.0.1:8000/p/{link(org, person, 'MARKETING').token}"
    mail = composed(request)
    parts = {"url": url, "words": words, "anchor": anchor(url, words)}
    assert (mail.text, mail.html) == (text.format(**parts), html.format(**parts))


def test_template_with_the_link_in_one_part_gets_it_in_the_other(org):
    person = factories.contact(org)
    version = factories.template(
        org, name="news", category="MARKETING", subject="N", text="Sale.",
        html="<p>Sale. <a href='{{ unsubscribe_url }}?lang=en'>Stop</a></p>",
    )  # fmt: skip
    mail = composed(render_request(org, person, version))
    url = f"http://127.0.0.1:8000/p/{link(org, person, 'MARKETING').token}"
    assert mail.text == f"Sale.\n\n{ENGLISH}: {url}\n"
    assert mail.html == f"<p>Sale. <a href='{url}?lang=en'>Stop</a></p>"


@pytest.mark.parametrize("category", ["TRANSACTIONAL", "BILLS"])
def test_literal_html_of_a_service_message_gets_a_text_and_no_link(org, category):
    Category.objects.create(organization=org, name="BILLS", regime="OPT_OUT")
    request = render_request(org, factories.contact(org), category=category)
    request.body["content"] = {"subject": "Bill", "html": "<h1>Bill</h1><p>10 &euro;</p>"}
    mail = composed(request)
    assert (mail.text, mail.html) == ("Bill\n\n10 €\n", "<h1>Bill</h1><p>10 &euro;</p>")


def test_previews_show_the_added_unsubscribe_link(api, org):
    person = factories.contact(org)
    factories.template(org, name="news", category="MARKETING", text="Sale.", html="<p>Sale</p>")
    token = link(org, person, "MARKETING").preview_token
    url = f"http://127.0.0.1:8000/p/{token}"
    body = {"language": "en_US", "channel": "EMAIL", "contactId": str(person.pk)}
    shown = api.call("POST", "/templates/news/render", body).json()
    assert (shown["text"], shown["html"]) == (
        f"Sale.\n\n{ENGLISH}: {url}\n",
        f"<p>Sale</p>{anchor(url)}",
    )
