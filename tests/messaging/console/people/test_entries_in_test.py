"""The TEST layer in the console: entries of TEST applications are shown and removed."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.models import ConsentEntry, ConsentEntryInTest, Suppression, SuppressionInTest
from rme.core import ids
from rme.tenants.models import Application, Membership
from tests import audited, factories
from tests.messaging.console.conftest import url
from tests.rest import Api, message
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db
ADDRESS = "ada.test@x.example"


@pytest.fixture
def ada(org):
    return factories.contact(org)


@pytest.fixture
def tester(org):
    return Api(org, mode=Application.Mode.TEST)


def record(caller, contact, address=ADDRESS):
    decision = {
        "contactId": str(contact.pk), "channel": "EMAIL", "category": "MARKETING",
        "status": "OPTED_OUT", "source": "API",
    }  # fmt: skip
    assert caller.call("POST", "/consent", decision).status_code < 300
    for target in ({"address": address}, {"contactId": str(contact.pk)}):
        body = {"channel": "EMAIL", "reason": "MANUAL", **target}
        assert caller.call("POST", "/suppressions", body).status_code < 300


def test_entries_of_the_test_layer_are_shown_and_live_ones_are_not(api, tester, org, ada):
    record(tester, ada)
    record(api, ada, "live@x.example")
    operator = person("operator", org, Membership.Role.OPERATOR)
    shown = operator.get(url("test_entries"))
    text = shown.content.decode()
    assert ADDRESS in text
    assert "live@x.example" not in text
    assert "never live messages" in text
    assert [len(shown.context[name]) for name in ("suppressions", "decisions")] == [2, 1]
    of_ada = operator.get(url("test_entries"), {"person": str(ada.pk)})
    assert [len(of_ada.context[name]) for name in ("suppressions", "decisions")] == [1, 1]
    link = f"{url('test_entries')}?person={ada.pk}"
    assert link in operator.get(f"{url('person', ada.pk)}?tab=record").content.decode()
    listed = operator.get(url("suppressions")).content.decode()
    assert "Test entries" in listed


def test_removed_entry_holds_no_test_message_and_live_ones_stay(api, tester, org, ada):
    record(tester, ada)
    record(api, factories.contact(org, email="bob@x.example"), "live@x.example")
    operator = person("operator", org, Membership.Role.OPERATOR)
    assert tester.send(message(ada)).status_code == 403
    for kind, model in (("suppression", SuppressionInTest), ("consent", ConsentEntryInTest)):
        for key in list(model.objects.values_list("pk", flat=True)):
            form = {"kind": kind, "entry": str(key)}
            assert operator.post(url("test_entries"), form).status_code == 302
    assert (SuppressionInTest.objects.count(), ConsentEntryInTest.objects.count()) == (0, 0)
    assert (Suppression.objects.count(), ConsentEntry.objects.count()) == (2, 1)
    assert tester.send(message(ada)).status_code == 202
    removed = [each for each in audited.summaries() if each[:2] == ("operator", "DELETED")]
    assert len(removed) == 3


def test_removing_a_test_entry_needs_permission_in_its_organization(tester, org, ada):
    record(tester, ada)
    key = SuppressionInTest.objects.first().pk
    form = {"kind": "suppression", "entry": str(key)}
    viewer = person("viewer", org, Membership.Role.VIEWER)
    assert viewer.get(url("test_entries")).status_code == 200
    assert viewer.post(url("test_entries"), form).status_code == 403
    stranger = person("stranger", factories.organization("other"), Membership.Role.OWNER)
    assert stranger.post(url("test_entries"), form).status_code == 404
    own = url("test_entries").replace("/acme/", "/other/")
    assert stranger.post(own, form).status_code == 404
    assert SuppressionInTest.objects.filter(pk=key).exists()


@pytest.mark.parametrize(
    "form",
    [{}, {"kind": "suppression", "entry": "\0"}, {"kind": "x", "entry": ids.new_text_id()},
     {"kind": "consent", "entry": ids.new_text_id()}],
)  # fmt: skip
def test_unknown_entry_is_not_found(org, form):
    operator = person("operator", org, Membership.Role.OPERATOR)
    assert operator.post(url("test_entries"), form).status_code == 404
    assert operator.get(url("test_entries"), {"person": "\0"}).status_code == 200


def test_statements_do_not_grow_with_the_entries(tester, org, ada):
    operator = person("operator", org, Membership.Role.OPERATOR)

    def count():
        operator.get(url("test_entries"))
        with CaptureQueriesContext(connection) as asked:
            operator.get(url("test_entries"))
        return len(asked)

    record(tester, ada)
    one = count()
    for number in range(3):
        record(tester, factories.contact(org, email=f"p{number}@x.example"), f"{number}@x.example")
    assert count() == one
