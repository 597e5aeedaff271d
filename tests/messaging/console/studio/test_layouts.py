"""Starter layouts of templates, and the test of one to its author."""

from functools import partial

import pytest
from django.test import Client

from messaging.console.studio.layouts import LAYOUTS
from messaging.content import drafts
from messaging.models import Template
from rme.crm import people
from rme.crm.models import Contact
from rme.tenants.models import Membership
from tests import factories
from tests.messaging.console.conftest import url
from tests.messaging.console.studio.scene import client_of, do, words
from tests.threads import during

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("layout", LAYOUTS, ids=[each.name for each in LAYOUTS])
def test_layout_is_a_publishable_draft(org, ann, layout):
    for name in (layout.name, f"{layout.name}-2"):
        if layout.name != "welcome" or name != "welcome":  # the organization has that one
            assert ann.post(url("template_new"), {"layout": layout.name}).status_code == 302
    names = Template.objects.filter(name__startswith=layout.name).values_list("name", flat=True)
    assert set(names) == {layout.name, f"{layout.name}-2"}
    row = Template.objects.get(name=f"{layout.name}-2").versions.get()
    assert drafts.texts_of(row)["subject"] == layout.fields["subject"]
    published = do(ann, "publish", row)
    assert words(published) == ["Version 1 is active."]


@pytest.mark.django_db(transaction=True)
def test_double_click_on_a_layout_adds_two_templates(org, ann, ben):
    adds = [partial(each.post, url("template_new"), {"layout": "notice"}) for each in (ann, ben)]
    (answer,) = during(*adds)
    assert answer.status_code == 302
    names = Template.objects.filter(name__startswith="notice").values_list("name", flat=True)
    assert set(names) == {"notice", "notice-2"}


@pytest.mark.django_db(transaction=True)
def test_double_click_on_test_to_me_adds_one_contact(org, ann, row):
    def add():
        people.lock_address(org.pk, "ann@example.com")
        factories.contact(org, email="ann@example.com")

    (sent,) = during(add, lambda: do(ann, "test", row, publish=False))
    assert words(sent) == ["Version 1 is on its way to ann@example.com."]
    assert Contact.objects.count() == 1


def test_unknown_layout_adds_nothing(org, ann):
    before = Template.objects.count()
    assert ann.post(url("template_new"), {"layout": "nonsense"}).status_code == 200
    assert Template.objects.count() == before


def test_test_to_me_adds_the_author_as_a_contact(org, ann, row):
    sent = do(ann, "test", row, publish=False)
    assert words(sent) == ["Version 1 is on its way to ann@example.com."]
    contact = Contact.objects.get()
    assert (contact.last_name, contact.email) == ("ann", "ann@example.com")
    do(ann, "test", row, publish=False)
    assert Contact.objects.count() == 1


def test_editor_who_may_not_add_contacts_is_told(org, row):
    editor = client_of(Client, org, "ed", Membership.Role.TEMPLATE_EDITOR)
    assert "Add yourself under Contacts." in words(do(editor, "test", row, publish=False))[0]
    assert not Contact.objects.exists()


def test_layouts_of_another_organization_take_no_name(org, ann):
    factories.template(factories.organization("other"), name="notice")
    ann.post(url("template_new"), {"layout": "notice"})
    assert Template.objects.filter(name="notice", organization=org).exists()
