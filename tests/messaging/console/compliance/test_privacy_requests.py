"""Pages of requests for data exports and erasures: recorded, decided, downloaded."""

import io
import json
import re
import zipfile
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.consent.tasks import answer_privacy_requests
from messaging.models import PrivacyFile, PrivacyRequest
from rme.core.cache import TtlCache
from rme.core.db import clock
from rme.crm.models import Contact
from rme.tenants.models import Membership
from tests import audited, factories
from tests.messaging.console.conftest import url
from tests.rest import Api, message
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(org):
    return factories.contact(org)


def record(client, kind, text, **fields):
    """Record a request by the form; return it."""
    done = client.post(url("privacy_new"), {"kind": kind, "person": text, **fields})
    assert done.status_code == 302, done.context["form"].errors
    row = PrivacyRequest.objects.latest("pk")
    assert done["Location"] == url("privacy_request", row.pk)
    return row


def carry_out(client, row):
    assert client.post(url("privacy_request", row.pk), {"checked": "on"}).status_code == 302
    answer_privacy_requests()


def text_of(client, name, *args, query=""):
    found = client.get(url(name, *args) + query)
    assert found.status_code == 200
    return found.content.decode()


def test_an_export_from_the_persons_page_to_the_file(root, org, ada):
    link = f"{url('privacy_new')}?kind=EXPORT&amp;person={ada.pk}"
    assert link in text_of(root, "person", ada.pk)
    form = root.get(link.replace("&amp;", "&")).context["form"]
    assert (form.initial["kind"], form.who.split(",")[0]) == ("EXPORT", "Ada Lovelace")
    row = record(root, "EXPORT", str(ada.pk), note="by email")
    page = text_of(root, "privacy_request", row.pk)
    assert re.search("Data export of Ada Lovelace <span [^>]*>Open</span>", page)
    unchecked = root.post(url("privacy_request", row.pk), {})
    assert "First check that this person made the request." in unchecked.content.decode()
    carry_out(root, row)
    assert "Download" in text_of(root, "privacy_request", row.pk)
    file = root.post(url("privacy_file", row.pk))
    assert file["Content-Type"] == "application/zip"
    assert "no-store" in file["Cache-Control"]
    with zipfile.ZipFile(io.BytesIO(file.content)) as archive:
        assert json.loads(archive.read("person.json"))["contact"]["email"] == ada.email
    assert audited.summaries()[-1] == ("root", "EXPORTED", "file downloaded")
    shown = root.get(f"{url('person', ada.pk)}?tab=consent").content.decode()
    assert "Data export requested on" in shown
    PrivacyFile.objects.update(expires_at=clock.now())
    assert root.post(url("privacy_file", row.pk)).status_code == 404
    assert "The file has been deleted." in text_of(root, "privacy_request", row.pk)


def test_erasure_shows_its_effect_and_leaves_no_name(root, org, ada):
    Api(org).send(message(ada))
    row = record(root, "ERASURE", ada.email)
    page = text_of(root, "privacy_request", row.pk)
    assert "scheduled or waiting messages that are cancelled: 1" in page
    assert "messages that lose content, address and details: 1" in page
    carry_out(root, row)
    assert not Contact.objects.exists()
    for page in (text_of(root, "privacy_request", row.pk), text_of(root, "privacy")):
        assert "Ada" not in page
        assert "a deleted contact" in page
    again = root.post(url("privacy_request", row.pk), {"do": "refuse", "reason": "late"})
    assert again.status_code == 302
    row.refresh_from_db()
    assert row.state == "DONE"


def test_a_refusal_needs_its_reason(root, org, ada):
    row = record(root, "ERASURE", str(ada.pk))
    empty = root.post(url("privacy_request", row.pk), {"do": "refuse", "reason": ""})
    assert empty.context["forms"][1].errors.keys() == {"reason"}
    root.post(url("privacy_request", row.pk), {"do": "refuse", "reason": "no proof of identity"})
    page = text_of(root, "privacy_request", row.pk)
    assert re.search("<span [^>]*>Refused</span>", page)
    assert "<dd>no proof of identity</dd>" in page
    assert Contact.objects.exists()


def test_subject_is_chosen_or_confirmed(root, org, ada):
    other = factories.contact(org, first_name="Eve")
    given = {"kind": "EXPORT", "person": "lovelace", "note": "by letter"}
    asked = root.post(url("privacy_new"), given).context["form"]
    assert asked.errors == {"chosen": ["Choose a person."]}
    assert [key for key, _ in asked.fields["chosen"].choices] == [str(ada.pk), str(other.pk)]
    assert asked["note"].value() == "by letter"  # what was typed is kept
    row = record(root, "EXPORT", "lovelace", chosen=str(other.pk))
    assert row.contact_id == str(other.pk)
    asked = root.post(url("privacy_new"), {"kind": "EXPORT", "person": "x@people.example"})
    assert asked.context["form"].errors.keys() == {"chosen"}
    row = record(root, "EXPORT", "x@people.example", chosen="address")
    assert (row.contact_id, row.address) == ("", "x@people.example")


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"kind": ""}, "kind"),
        ({"kind": "SALE"}, "kind"),
        ({"person": ""}, "person"),
        ({"person": "Nobody"}, "person"),
        ({"requested_at": "2999-01-01T10:00"}, "requested_at"),
        ({"requested_at": "yesterday"}, "requested_at"),
        ({"note": "x" * 501}, "note"),
    ],
)
def test_invalid_request_is_an_error_at_its_field(root, org, ada, fields, wrong):
    given = {"kind": "EXPORT", "person": ada.email, **fields}
    assert root.post(url("privacy_new"), given).context["form"].errors.keys() == {wrong}
    assert not PrivacyRequest.objects.exists()


def test_a_second_request_while_one_is_pending_is_refused(root, org, ada):
    record(root, "EXPORT", ada.email)
    again = root.post(url("privacy_new"), {"kind": "EXPORT", "person": ada.email})
    errors = {"kind": ["This was requested already and is still open."]}
    assert again.context["form"].errors == errors


def test_list_is_filtered_and_marks_overdue_requests(root, org, ada):
    late = record(root, "EXPORT", ada.email)
    PrivacyRequest.objects.update(due_at=clock.now() - timedelta(days=1))
    record(root, "ERASURE", "x@people.example", chosen="address")

    def shown(query):
        return [each.row.kind for each in root.get(url("privacy") + query).context["lines"]]

    assert shown("") == ["ERASURE", "EXPORT"]
    assert shown("?state=OVERDUE") == shown("?kind=EXPORT") == ["EXPORT"]
    assert shown("?person=lovelace") == ["EXPORT"]
    assert shown("?person=x@people.example") == ["ERASURE"]
    assert shown("?state=DONE") == shown("?person=nobody") == []
    home = root.get("/admin/").content.decode()
    assert f"{url('privacy')}?state=OVERDUE" in home
    shown_states = "<span [^>]*>Open</span> <span [^>]*>Overdue</span>"
    assert re.search(shown_states, text_of(root, "privacy_request", late.pk))


def test_roles_without_access_to_contents_cannot_download(root, org, ada):
    row = record(root, "EXPORT", ada.email)
    carry_out(root, row)
    viewer = person("v", org, Membership.Role.VIEWER)
    page = text_of(viewer, "privacy_request", row.pk)
    assert "download the file." in page
    assert viewer.post(url("privacy_file", row.pk)).status_code == 404
    assert viewer.post(url("privacy_request", row.pk), {"checked": "on"}).status_code == 403
    operator = person("o", org, Membership.Role.OPERATOR)
    assert operator.post(url("privacy_file", row.pk)).status_code == 200


def test_statements_do_not_grow(root, org):
    counts = []
    for number in (2, 20):
        for each in factories.contacts(org, number):
            record(root, "EXPORT", str(each.pk))
        root.get(url("privacy"))  # the session keeps the organization
        TtlCache.clear_all()
        with CaptureQueriesContext(connection) as captured:
            root.get(url("privacy"))
        counts.append(len(captured))
    assert counts == [9, 9]
