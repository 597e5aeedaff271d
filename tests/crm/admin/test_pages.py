"""Pages of records: what is typed is kept in its normal form, and searched."""

import pytest

from rme.crm.models import Account, Case, CaseComment, Contact
from rme.tenants.models import Membership
from tests import audited, factories
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


NO_PHONE = (
    "This is not a phone number of US: a number of another country begins with its code, like +41."
)


def case_form(org, **more: str):
    given = {"organization": org.pk, "number": "7", "subject": "S", "issue": "I"}
    return given | {"status": "New", "priority": "Medium"} | more


@pytest.mark.promise("embedded-3")
def test_phones_are_stored_as_e164_and_invalid_ones_are_rejected(org, editor):
    given = {"organization": org.pk, "last_name": "L", "mobile": "(212) 736-5000"}
    assert editor.post(page(Contact, "add"), given).status_code == 302
    assert Contact.objects.get().mobile == "+12127365000"
    shown = editor.post(page(Contact, "add"), given | {"phone": "x", "email": "y"})
    assert {name: [*each] for name, each in shown.context["adminform"].form.errors.items()} == {
        "phone": [NO_PHONE],
        "email": ["This is not an email address."],
    }


@pytest.mark.parametrize("field", ["phone", "mobile"])
@pytest.mark.parametrize("typed", ["079 123 45 67", "555 0100", "+1 079 123 4567", "+999 12345"])
def test_invalid_number_is_rejected_and_shown_unchanged(org, editor, field, typed):
    form = {"organization": org.pk, "last_name": "L", field: typed}
    shown = editor.post(page(Contact, "add"), form).context["adminform"].form
    assert {name: [*each] for name, each in shown.errors.items()} == {field: [NO_PHONE]}
    assert shown[field].value() == typed


@pytest.mark.parametrize(("language", "taken"), [("gsw_CH", True), ("de", True), ("xx", False),
    ("en_ZZ", False), ("english", False), ("EN", False)])  # fmt: skip
def test_a_language_must_exist(org, editor, language, taken):
    form = {"organization": org.pk, "last_name": "L", "language": language}
    shown = editor.post(page(Contact, "add"), form)
    assert (shown.status_code == 302) is taken
    if not taken:
        assert set(shown.context["adminform"].form.errors) == {"language"}


@pytest.mark.promise("embedded-3")
def test_an_accounts_folded_name_follows_its_name(org, editor):
    given = {"organization": org.pk, "name": "Café Müller GmbH"}
    editor.post(page(Account, "add"), given)
    row = Account.objects.get()
    assert row.name_folded == "cafemuller"
    editor.post(page(Account, "change", row.pk), given | {"name": "Acme, Inc."})
    row.refresh_from_db()
    assert row.name_folded == "acme"


@pytest.mark.promise("embedded-4")
def test_records_are_searched(org, editor):
    # ids are searched too, and an id may have "ada" in it
    factories.contact(org, first_name="Ruth", email="ruth@x.example", mobile="+12125550100")
    factories.contact(org, first_name="Bob", email="bob@x.example", mobile="+12125550101")
    for text in ("ruth@x", "5550100", "Ruth"):
        shown = editor.get(page(Contact, "changelist") + f"?q={text}").content.decode()
        assert ("ruth@x.example" in shown, "bob@x.example" in shown) == (True, False)


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
