"""Templates at accept and at send: languages and versions."""

import pytest

from messaging.content import templates
from rme.core.cache import TtlCache
from rme.core.errors import InvalidPayload
from tests import factories
from tests.messaging.content.templates_scene import sent_text
from tests.rest import Api, error, message

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(org):
    return factories.contact(org, language="de_CH", zone="Europe/Zurich")


def in_languages(org, *languages, name="greeting", channel="EMAIL"):
    for language in languages:
        texts = {"subject": language} if channel == "EMAIL" else {}
        factories.template(
            org, channel, name=name, language=language, text=f"text in {language}", **texts
        )


# --- languages -----------------------------------------------------------------------------------
@pytest.mark.promise("request-12", "templates-8")
@pytest.mark.parametrize(
    ("fallback", "there", "asked", "chosen"),
    [
        (False, ["en_GB", "en", "en_US"], "en_GB", "en_GB"),
        (False, ["en", "en_US"], "en_GB", None),
        (True, ["en_GB", "en", "en_US"], "en_GB", "en_GB"),
        (True, ["en", "en_US"], "en_GB", "en"),
        (True, ["en_US", "de"], "en_GB", "en_US"),
        (True, ["en_US", "de"], "fr", "en_US"),
        (True, ["de"], "en_GB", None),
        (True, ["en_GB"], "en", None),
        (False, ["de_CH", "de", "en_US"], None, "de_CH"),
        (False, ["de", "en_US"], None, None),
        (True, ["de", "en_US"], None, "de"),
    ],
)
def test_language_at_accept_at_render_and_at_send(org, ada, fallback, there, asked, chosen):
    org.locale_fallback = fallback
    org.save()
    in_languages(org, *there)
    TtlCache.clear_all()
    api = Api(org)
    named = {"name": "greeting"} | ({"language": asked} if asked else {})
    accepted = api.send(message(ada, template=named))
    rendered = api.call(
        "POST",
        "/templates/greeting/render",
        {"contactId": str(ada.pk)} | ({"language": asked} if asked else {}),
    )
    if chosen is None:
        text = f"There is no active template greeting in {asked or 'de_CH'} for email"
        assert accepted.json() == error("TEMPLATE_NOT_FOUND", f"{text}.")
        text = text.replace("email", "email, SMS, push")
        assert rendered.json() == error("TEMPLATE_NOT_FOUND", f"{text}.")
        return
    assert accepted.status_code == 202
    assert (rendered.json()["language"], rendered.json()["text"]) == (chosen, f"text in {chosen}")
    assert sent_text(org) == f"text in {chosen}"


@pytest.mark.promise("request-12")
def test_language_left_out_is_the_organizations_for_people_without_one(api, org):
    in_languages(org, "en_US", "de")
    nobody = factories.contact(org, language="")
    assert api.send(message(nobody, template={"name": "greeting"})).status_code == 202
    rendered = api.call("POST", "/templates/greeting/render", {"contactId": str(nobody.pk)})
    assert rendered.json()["language"] == "en_US"
    assert api.call("POST", "/templates/greeting/render", {}).json()["language"] == "en_US"
    assert sent_text(org) == "text in en_US"


# --- versions ------------------------------------------------------------------------------------
def states(version):
    return dict(version.template.versions.values_list("version", "state"))


@pytest.mark.promise("templates-1")
def test_archived_version_can_be_activated_again(api, org, ada):
    first = factories.template(org, name="v", text="first")
    second = templates.add_draft(first.template, {"subject": "s", "text": "second"})
    body = message(ada, template={"name": "v", "language": "en_US"})
    assert states(first) == {1: "ACTIVE", 2: "DRAFT"}
    api.send(body)
    templates.activate(second)
    assert states(first) == {1: "ARCHIVED", 2: "ACTIVE"}
    assert sent_text(org) == "first"  # as it was accepted
    api.send(body)
    assert sent_text(org) == "second"
    templates.activate(first)
    assert states(first) == {1: "ACTIVE", 2: "ARCHIVED"}
    api.send(body)
    assert sent_text(org) == "first"
    assert templates.add_draft(first.template, {"text": "third"}).version == 3


@pytest.mark.promise("templates-6")
def test_unparsable_version_does_not_replace_the_active_one(org):
    first = factories.template(org, name="v", text="first")
    second = templates.add_draft(first.template, {"subject": "{{ a", "text": "{% if %}"})
    with pytest.raises(InvalidPayload) as raised:
        templates.activate(second)
    assert [detail.field for detail in raised.value.details] == ["subject", "text"]
    assert states(first) == {1: "ACTIVE", 2: "DRAFT"}
