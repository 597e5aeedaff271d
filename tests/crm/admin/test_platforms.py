"""The form of a platform, and the test of its connection."""

from typing import Any

import pytest

from rme.crm import mapping, mapping_text, platforms
from rme.crm.admin.platform_form import mapping_name
from rme.crm.connectors import REMOTE
from rme.crm.models import Platform
from rme.crm.presets import PRESETS
from rme.tenants.models import Membership
from rme.transport import per_thread
from tests import audited, factories
from tests.crm import remote
from tests.fakes.odoo import KEY
from tests.tenants.admin.scene import button, page, person

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("opened")]


@pytest.fixture
def owner(org):
    return person("owner", org, Membership.Role.OWNER)


def form(org, kind: str, settings: dict[str, Any], raw: dict[str, Any], **more: str):
    texts = {
        mapping_name(name, part): text
        for name, given in raw.items()
        for part, text in mapping_text.as_text(given).items()
    }
    typed = {f"setting_{kind}_{name}": value for name, value in settings.items()}
    return {"organization": org.pk, "kind": kind, **typed, **texts, **more}


def errors_of(shown: Any) -> dict[str, list[str]]:
    return {name: [*each] for name, each in shown.context["adminform"].form.errors.items()}


@pytest.mark.promise("mapping-1")
def test_platform_is_stored_as_typed(owner, org, odoo):
    settings = remote.odoo_settings(odoo)
    shown = owner.post(page(Platform, "add"), form(org, "odoo", settings, remote.ODOO_MAPPING))
    assert shown.status_code == 302
    kept = platforms.get(org.pk)
    assert (kept.kind, kept.problem) == ("odoo", "")
    assert kept.settings == {**settings, "address": odoo.url, "ca_pem": settings["ca_pem"].strip()}
    assert kept.mappings == mapping.parse(remote.ODOO_MAPPING)


@pytest.mark.promise("mapping-8")
def test_a_secret_is_neither_shown_nor_lost(owner, org, odoo):
    given = form(org, "odoo", remote.odoo_settings(odoo), remote.ODOO_MAPPING)
    owner.post(page(Platform, "add"), given)
    row = Platform.objects.get()
    assert KEY.encode() not in owner.get(page(Platform, "change", row.pk)).content
    owner.post(page(Platform, "change", row.pk), given | {"setting_odoo_api_key": ""})
    assert platforms.get(org.pk).settings["api_key"] == KEY
    assert [line for line in audited.lines() if "api_key" in line] == [
        "setting_odoo_api_key: … → …"
    ]
    assert KEY not in "".join(audited.lines())


@pytest.mark.promise("mapping-3")
def test_mapped_names_are_checked_against_the_platform(owner, org, odoo):
    wrong = {
        **remote.ODOO_MAPPING,
        "Event": {"object": "event.evnt", "fields": {"name": ["name"]}},
        "Contact": {
            "object": "res.partner",
            "fields": {"email": ["e_mail"], "account_name": ["parent_id.nmae"]},
            "filter": [["is_compny", "=", False]],
        },
    }
    shown = owner.post(page(Platform, "add"), form(org, "odoo", remote.odoo_settings(odoo), wrong))
    assert errors_of(shown) == {
        "map_Event_object": ["the platform has no event.evnt"],
        "map_Contact_email": ["res.partner has no e_mail"],
        "map_Contact_account_name": ["res.partner has no nmae"],
        "map_Contact_filter": ["res.partner has no is_compny"],
    }
    assert not Platform.objects.exists()


@pytest.mark.promise("mapping-3")
@pytest.mark.django_db(transaction=True)
def test_no_transaction_is_open_while_the_platform_is_asked(owner, org, odoo):
    states = remote.open_transactions(odoo)
    given = form(org, "odoo", remote.odoo_settings(odoo), remote.ODOO_MAPPING)
    assert owner.post(page(Platform, "add"), given).status_code == 302
    assert owner.post(page(Platform, "change", org.pk), given).status_code == 302
    assert states == [[]] * len(odoo.asked)
    assert len(odoo.asked) == 2 * len({each["object"] for each in remote.ODOO_MAPPING.values()})


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ({"api_key": "bad"}, "The platform rejects these credentials."),
        ({"database": "no"}, "The platform cannot be reached."),
    ],
)
def test_a_platforms_refusal_is_shown(owner, org, odoo, typed, message):
    given = form(org, "odoo", remote.odoo_settings(odoo, **typed), remote.ODOO_MAPPING)
    assert errors_of(owner.post(page(Platform, "add"), given)) == {
        "setting_odoo_address": [message]
    }
    assert owner.post(page(Platform, "add"), given | {"unchecked": "on"}).status_code == 302


@pytest.mark.promise("mapping-7")
def test_address_that_is_not_opened_is_neither_called_nor_stored(owner, org, odoo, settings):
    settings.OUTBOUND_OPEN_HOSTS = []
    per_thread._local.__dict__.clear()
    for address in (odoo.url, "https://169.254.169.254", "http://odoo.com"):
        given = form(org, "odoo", remote.odoo_settings(odoo, address=address), remote.ODOO_MAPPING)
        assert errors_of(owner.post(page(Platform, "add"), given)) == {
            "setting_odoo_address": ["The platform cannot be reached."]
        }
    assert (odoo.connections, Platform.objects.exists()) == (0, False)


@pytest.mark.promise("mapping-5")
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_offered_and_accepted(owner, org, preset):
    kind, label, raw = PRESETS[preset].kind, str(PRESETS[preset].label), PRESETS[preset].mapping
    assert label in owner.get(page(Platform, "add")).content.decode()
    settings = {
        "odoo": {"address": "https://acme.example", "api_key": "k"},
        "salesforce": {"address": "https://acme.example", "client_id": "a", "client_secret": "s"},
    }[kind]
    given = form(org, kind, settings, {}, preset=preset, unchecked="on")
    assert owner.post(page(Platform, "add"), given).status_code == 302
    assert platforms.get(org.pk).mappings == mapping.parse(raw)


@pytest.mark.promise("mapping-2")
@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"setting_odoo_address": "odoo.example"}, "setting_odoo_address"),
        ({"setting_odoo_address": "https://x.example/path"}, "setting_odoo_address"),
        ({"setting_odoo_address": "ftp://x.example"}, "setting_odoo_address"),
        ({"setting_odoo_address": "http://x.example"}, "setting_odoo_address"),
        ({"setting_odoo_api_key": ""}, "setting_odoo_api_key"),
        ({"map_Contact_email": "email; DROP"}, "map_Contact_email"),
        ({"map_Contact_email": ""}, "map_Contact_email"),
        ({"map_Contact_object": "res.partner/../x"}, "map_Contact_object"),
        ({"map_Account_object": ""}, "map_Account_object"),
        ({"map_Contact_filter": "active > 1"}, "map_Contact_filter"),
        ({"map_Contact_defaults": "nonsense"}, "map_Contact_defaults"),
        ({"map_Case_values": "nonsense"}, "map_Case_values"),
        ({"preset": "salesforce"}, "preset"),
    ],
)
def test_impossible_value_is_an_error_at_its_field(owner, org, odoo, changes, wrong):
    given = form(org, "odoo", remote.odoo_settings(odoo), remote.ODOO_MAPPING)
    shown = owner.post(page(Platform, "add"), given | changes)
    assert set(errors_of(shown)) == {wrong}
    assert odoo.asked == []


def test_a_preset_takes_the_place_of_the_mapping(owner, org, odoo):
    given = form(org, "odoo", remote.odoo_settings(odoo), {}, preset="odoo")
    assert owner.post(page(Platform, "add"), given).status_code == 302
    assert platforms.get(org.pk).mappings == mapping.parse(PRESETS["odoo"].mapping)


def test_salesforce_needs_a_secret_or_a_key(owner, org, salesforce):
    settings = remote.salesforce_settings(salesforce)
    given = form(org, "salesforce", settings, remote.SALESFORCE_MAPPING)
    shown = owner.post(page(Platform, "add"), given | {"setting_salesforce_client_secret": ""})
    assert errors_of(shown) == {"__all__": ["A client secret or a private key is needed."]}
    assert owner.post(page(Platform, "add"), given).status_code == 302


def test_platform_can_be_switched_back_to_embedded(owner, org, odoo):
    given = form(org, "odoo", remote.odoo_settings(odoo), remote.ODOO_MAPPING)
    owner.post(page(Platform, "add"), given)
    owner.post(page(Platform, "change", org.pk), given | {"kind": "embedded"})
    row = Platform.objects.get()
    assert (row.kind, row.credentials, row.mapping) == ("embedded", "", {})
    assert platforms.get(org.pk).kind == "embedded"


@pytest.mark.promise("mapping-4")
def test_connection_test_shows_missing_fields_and_objects(owner, org, salesforce):
    settings = remote.salesforce_settings(salesforce)
    given = form(org, "salesforce", settings, remote.SALESFORCE_MAPPING)
    owner.post(page(Platform, "add"), given)
    row = Platform.objects.get()
    assert owner.get(button(Platform, row, "test-connection")).context["found"] == []
    shown = owner.post(button(Platform, row, "test-connection"), follow=True)
    assert shown.context["result"].endswith(" s, and has everything that the mapping names.")
    del salesforce.objects["Exhibitor__c"], salesforce.objects["Contact"]["OtherPhone"]
    shown = owner.post(button(Platform, row, "test-connection"), follow=True)
    assert shown.context["result"].endswith(" s, but lacks something.")
    found = {each.kind: each for each in shown.context["found"]}
    assert set(found) == set(mapping.KINDS)
    assert found["Account"].problems == []
    assert found["Contact"].problems == [
        "phone: Contact has no OtherPhone",
        "phones: Contact has no OtherPhone",
    ]
    assert found["Exhibitor"].problems == ["object: the platform has no Exhibitor__c"]


@pytest.mark.promise("mapping-4")
def test_connection_test_shows_rejected_credentials(owner, org, salesforce):
    settings = remote.salesforce_settings(salesforce, client_secret="wrong")
    given = form(org, "salesforce", settings, remote.SALESFORCE_MAPPING, unchecked="on")
    owner.post(page(Platform, "add"), given)
    shown = owner.post(button(Platform, Platform.objects.get(), "test-connection"), follow=True)
    assert shown.context["result"] == "The platform rejects these credentials."


@pytest.mark.promise("mapping-8")
def test_platform_is_visible_to_owners_only(org, odoo):
    Platform.objects.create(organization=org, kind="odoo")
    other = factories.organization("other")
    stranger = person("stranger", other, Membership.Role.OWNER)
    assert stranger.get(page(Platform, "change", org.pk)).status_code == 404
    assert stranger.post(button(Platform, org.platform, "test-connection")).status_code == 404
    editor = person("editor", org, Membership.Role.OPERATOR)
    assert editor.get(page(Platform, "change", org.pk)).status_code in (403, 404)
    assert set(REMOTE) == {"salesforce", "odoo"}
