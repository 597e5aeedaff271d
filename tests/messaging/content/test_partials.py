"""Partials in templates at send: whose they are, changed and gone."""

import pytest

from messaging.content import templates
from messaging.models import Partial, TemplateVersion
from rme.core.errors import InvalidPayload
from tests import factories
from tests.messaging.content.templates_scene import sent_text
from tests.rest import message, work

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(org):
    return factories.contact(org, language="de_CH", zone="Europe/Zurich")


def partial(org, name, text):
    return Partial.objects.create(organization=org, name=name, text=text)


def test_partial_belongs_to_its_organization(api, org, ada):
    partial(org, "footer", "© {{ year }} Acme")
    partial(factories.organization("other"), "footer", "theirs")
    factories.template(org, name="p", text="Hi\n{% render 'footer', year: 2026 %}")
    api.send(message(ada, template={"name": "p", "language": "en_US"}))
    assert sent_text(org) == "Hi\n© 2026 Acme"


def test_partial_of_another_organization_is_missing(org):
    partial(factories.organization("other"), "footer", "theirs")
    with pytest.raises(InvalidPayload) as raised:
        factories.template(org, name="p", text="Hi {% render 'footer' %}")
    (only,) = raised.value.details
    assert (only.field, only.message) == ("text", "there is no partial 'footer'")
    assert not TemplateVersion.objects.filter(template__name="p", state="ACTIVE").exists()


def test_changed_partial_is_used_at_send(api, org, ada):
    footer = partial(org, "footer", "old")
    factories.template(org, name="p", text="Hi {% render 'footer' %}")
    body = message(ada, template={"name": "p", "language": "en_US"})
    api.send(body)
    assert sent_text(org) == "Hi old"
    api.send(body)
    footer.text = "new"
    footer.save()
    templates.forget_partials(org.pk)  # or two seconds later
    assert sent_text(org) == "Hi new"


def test_deleted_partial_fails_only_the_messages_using_it(api, org, ada):
    partial(org, "footer", "x")
    factories.template(org, name="p", text="Hi {% render 'footer' %}")
    needing = api.send(message(ada, template={"name": "p", "language": "en_US"})).json()
    other = api.send(message(ada)).json()
    Partial.objects.all().delete()
    templates.forget_partials(org.pk)
    work()
    assert api.get(other["messageId"])["status"] == "DELIVERED"
    failed = api.get(needing["messageId"])
    assert (failed["status"], failed["error"]) == (
        "FAILED",
        {
            "code": "TEMPLATE_ERROR",
            "message": "text, line 1, column 7: there is no partial 'footer'",
        },
    )
