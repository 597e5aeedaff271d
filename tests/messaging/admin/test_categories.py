"""A category becomes opt-out only by an owner, who has seen whom it makes reachable."""

import pytest

from messaging.consent import ledger
from messaging.consent.ledger import ConsentDecision
from messaging.models import Category
from rme.core.cache import TtlCache
from tests import factories
from tests.tenants.admin.scene import page, person

pytestmark = pytest.mark.django_db

FORM = {"name": "NEWS", "on_unknown": "HOLD", "expires_after": "60", "cap_window": "60"}


def save(client, org, regime, row=None, **more):
    """Post the form of a category; return the errors, or None if it was saved."""
    url = page(Category, "change", row.pk) if row else page(Category, "add")
    TtlCache.clear_all()
    answer = client.post(url, {"organization": org.pk, **FORM, "regime": regime, **more})
    return None if answer.status_code == 302 else answer.context["adminform"].form.errors


def news(org, regime="OPT_IN"):
    return Category.objects.create(organization=org, name="NEWS", regime=regime)


def decide(org, contact, channel, category, status):
    decision = ConsentDecision(str(contact.pk), channel, category, status, "API", None)
    ledger.record(org.pk, [decision])


@pytest.mark.parametrize("exists", [True, False], ids=["change", "add"])
def test_an_editor_does_not_make_a_category_opt_out(org, exists):
    row = news(org) if exists else None
    editor = person("e", org, "OPERATOR")
    for more in ({}, {"accept_effect": "on"}):
        found = save(editor, org, "OPT_OUT", row, **more)
        assert found == {"regime": ["Only owners can allow messages without consent."]}
    assert save(editor, org, "OPT_IN", row) is None


def test_an_editor_makes_a_category_opt_in(org):
    row = news(org, "OPT_OUT")
    assert save(person("e", org, "OPERATOR"), org, "OPT_IN", row) is None
    row.refresh_from_db()
    assert row.regime == "OPT_IN"


def test_an_owner_sees_the_effect_before_it_is_saved(org):
    row, owner = news(org), person("o", org, "OWNER")
    agreed, refused, silent, *_ = factories.contacts(org, 5)
    factories.contact(org, mobile="")
    factories.contact(factories.organization("other"))
    factories.device(org, silent)
    decide(org, agreed, "EMAIL", "NEWS", "OPTED_IN")
    decide(org, refused, "ALL", "ALL", "OPTED_OUT")
    found = save(owner, org, "OPT_OUT", row)
    assert found == {
        "accept_effect": [
            "NEWS messages may then reach 4 people by email, 4 people by SMS, 1 person by push, "
            "who haven't agreed. Nothing is saved yet: switch this on to save."
        ]
    }
    row.refresh_from_db()
    assert row.regime == "OPT_IN"
    assert save(owner, org, "OPT_OUT", row, accept_effect="on") is None
    row.refresh_from_db()
    assert row.regime == "OPT_OUT"
    assert save(owner, org, "OPT_OUT", row) is None  # it is opt-out already


def test_the_built_in_categories_keep_their_regime_without_a_question(org):
    editor = person("e", org, "OPERATOR")
    assert save(editor, org, "OPT_OUT", name="TRANSACTIONAL") is None
    assert set(save(editor, org, "OPT_OUT", name="MARKETING")) == {"regime"}


def test_a_reader_sees_the_category(org):
    row = news(org)
    shown = person("v", org, "VIEWER").get(page(Category, "change", row.pk))
    assert "Write to people who haven&#x27;t agreed" not in shown.content.decode()


def test_empty_list_names_the_categories_that_every_organization_has(org):
    shown = person("v", org, "VIEWER").get(page(Category, "changelist")).content.decode()
    assert "Every organization has TRANSACTIONAL" in shown
    assert "No other categories yet" in shown
    assert "There are no categories yet" not in shown


def test_order_of_channels_is_chosen_by_their_names(org):
    editor = person("e", org, "OPERATOR")
    shown = editor.get(page(Category, "add")).content.decode()
    assert '<option value="SMS,EMAIL">SMS, then Email</option>' in shown
    assert "Default: Push, then Email, then SMS" in shown
    assert save(editor, org, "OPT_IN", channel_order="SMS,EMAIL") is None
    row = Category.objects.get()
    assert row.channel_order == ["SMS", "EMAIL"]
    assert save(editor, org, "OPT_IN", row, channel_order="") is None
    row.refresh_from_db()
    assert row.channel_order == []
    assert "channel_order" in save(editor, org, "OPT_IN", row, channel_order="FAX")


def test_name_that_is_no_code_is_explained(org):
    found = save(person("e", org, "OPERATOR"), org, "OPT_IN", name="weekly news")
    assert found["name"][0].startswith("Begin with a capital letter.")
