"""What an email carries so that its reader can unsubscribe."""

import pytest

from messaging.consent import ledger
from messaging.content import compose, links, templates
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
    )


def link(org, person, category, channel="EMAIL"):
    delivery_id = "01a1fb37-a4a4-7470-9fc2-6927566e64b5"
    return links.PreferenceLink(org.pk, str(person.pk), channel, category, delivery_id)


def test_marketing_carries_one_click_headers_and_the_page(org):
    person = factories.contact(org)
    text = {"subject": "N", "text": "Change: {{ unsubscribe_url }}"}
    version = factories.template(org, name="news", category="MARKETING", **text)
    mail = compose.email(render_request(org, person, version))
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
    mail = compose.email(render_request(org, factories.contact(org), category=category))
    assert ("List-Unsubscribe" in mail.headers) is carried


def test_service_messages_carry_none_and_may_link_to_the_page(org):
    person = factories.contact(org)
    version = factories.template(org, name="bill", text="{{ unsubscribe_url }}")
    mail = compose.email(render_request(org, person, version))
    assert mail.headers == {}
    token = link(org, person, "TRANSACTIONAL").token
    assert mail.text.strip() == f"http://127.0.0.1:8000/p/{token}"


def test_a_text_message_may_link_to_the_page(org):
    person = factories.contact(org)
    version = factories.template(org, "SMS", "news", text="{{ unsubscribe_url }}")
    sent = compose.sms(render_request(org, person, version))
    token = link(org, person, "TRANSACTIONAL", "SMS").token
    assert sent.text == f"http://127.0.0.1:8000/p/{token}"


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
