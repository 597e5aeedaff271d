"""An organization is deleted although programs and workers still add rows to it, or not at all."""

from datetime import UTC, datetime

import pytest
from django.db import connection

from messaging.models import PrivacyFile, PrivacyRequest
from rme.tenants.admin.pages import IN_USE
from rme.tenants.models import Organization
from tests.tenants.admin.scene import page

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def org(db):
    """Return an organization without templates and consent, which can't be deleted."""
    return Organization.objects.create(id="old", name="Old")


def deleted_while_exports_end(client, org, count):
    """Delete an organization; so many times a data export stores its file in the middle of it."""
    row = PrivacyRequest.objects.create(
        organization=org, kind="EXPORT", state="RUNNING", requested_at=NOW, due_at=NOW
    )
    ends = [row] * count

    def end_before_its_request_is_deleted(execute, sql, *arguments):
        if sql.startswith(f'DELETE FROM "{PrivacyRequest._meta.db_table}"') and ends:
            PrivacyFile.objects.create(request=ends.pop(), content=b"", size=0, expires_at=NOW)
        return execute(sql, *arguments)

    with connection.execute_wrapper(end_before_its_request_is_deleted):
        answer = client.post(page(Organization, "delete", org.pk), {"post": "yes"})
    assert not ends
    return answer


def test_organization_with_a_running_export_is_deleted(root, org):
    answer = deleted_while_exports_end(root, org, 2)
    assert answer.status_code == 302
    assert not Organization.objects.exists()
    assert (PrivacyRequest.objects.count(), PrivacyFile.objects.count()) == (0, 0)


def test_organization_in_use_stays_and_says_so(root, org):
    answer = deleted_while_exports_end(root, org, 3)
    assert (answer.status_code, IN_USE in answer.content.decode().replace("&#x27;", "'")) == (
        503, True,
    )  # fmt: skip
    assert Organization.objects.exists()
    action = {"action": "delete_selected", "_selected_action": org.pk, "post": "yes"}
    assert root.post(page(Organization, "changelist"), action).status_code == 302
    assert not Organization.objects.exists()
