"""Pages of records: what is typed is kept in its normal form."""

import pytest

from rme.crm.models import Account, Case, CaseComment
from rme.tenants.models import Membership
from tests import audited
from tests.tenants.admin.scene import page, person

pytestmark = pytest.mark.django_db
Role = Membership.Role


@pytest.fixture
def editor(org):
    return person("editor", org, Role.OPERATOR)


def inline(*texts: str, existing: int = 0, **more: str):
    """Write the form of a case's comments."""
    form = {"comments-TOTAL_FORMS": str(existing + len(texts)), **more}
    form |= {"comments-INITIAL_FORMS": str(existing)}
    return form | {f"comments-{existing + i}-text": text for i, text in enumerate(texts)}


def case_form(org, **more: str):
    given = {"organization": org.pk, "number": "7", "subject": "S", "issue": "I"}
    return given | {"status": "New", "priority": "Medium"} | more


@pytest.mark.promise("embedded-3")
def test_an_accounts_folded_name_follows_its_name(org, editor):
    given = {"organization": org.pk, "name": "Café Müller GmbH"}
    editor.post(page(Account, "add"), given)
    row = Account.objects.get()
    assert row.name_folded == "cafemuller"
    editor.post(page(Account, "change", row.pk), given | {"name": "Acme, Inc."})
    row.refresh_from_db()
    assert row.name_folded == "acme"


@pytest.mark.promise("embedded-5")
def test_case_comments_show_their_author(org, editor):
    editor.post(page(Case, "add"), case_form(org, **inline("First")))
    case = Case.objects.get()
    (first,) = case.comments.all()
    assert (first.organization_id, first.text, first.author) == (org.pk, "First", "editor")
    other = person("other", org, Role.OPERATOR)
    changed = {"comments-0-id": str(first.pk), "comments-0-case": str(case.pk)}
    changed["comments-0-text"] = "Something else"
    form = case_form(org, status="Closed", **inline("Second", existing=1, **changed))
    assert other.post(page(Case, "change", case.pk), form).status_code == 302
    rows = CaseComment.objects.order_by("id").values_list("text", "author")
    assert list(rows) == [("First", "editor"), ("Second", "other")]
    assert Case.objects.get().status == "Closed"
    assert "text: – → Second" in audited.lines(actor_name="other")


@pytest.mark.promise("embedded-5")
def test_viewer_cannot_comment(org, editor):
    editor.post(page(Case, "add"), case_form(org, **inline()))
    case = Case.objects.get()
    viewer = person("viewer", org, Role.VIEWER)
    form = case_form(org, **inline("Mine"))
    assert viewer.post(page(Case, "change", case.pk), form).status_code == 403
    assert not CaseComment.objects.exists()
