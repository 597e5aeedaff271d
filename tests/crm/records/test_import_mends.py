"""Bad rows of a file are mended on its page, without a second upload."""

import pytest

from rme.crm.models import Contact, RecordImport
from rme.tenants import imports
from rme.tenants.models import Membership
from tests.crm.records.import_scene import finish, mend, odd, upload
from tests.tenants.admin.scene import page, person

pytestmark = pytest.mark.django_db
Role = Membership.Role


def test_reasons_of_bad_rows_are_counted_with_their_values(org, redis):
    editor = person("editor", org, Role.OPERATOR)
    shown = editor.get(odd(editor, org))
    rows = [(each.reason.column, each.reason.rows) for each in shown.context["form"].rows()]
    assert rows == [("language", 2), ("lastName", 2), ("email", 1), ("mobile", 1)]
    text = shown.content.decode()
    for words in ("Deutsch", "nobody", "n/a", "Use for last name in all 2 rows"):
        assert words in text


def test_bad_rows_are_mended_without_a_second_upload(org, redis):
    editor = person("editor", org, Role.OPERATOR)
    url = odd(editor, org)
    mends = {"use_0_0": "de", "use_1_0": "Unknown", "empty_3": "on"}
    assert mend(editor, url, "again", **mends).status_code == 302
    assert finish() == ("DONE", 3, 0, 1)
    assert not Contact.objects.exists()
    assert mend(editor, url, "import", use_0_0="max@x.example").status_code == 302
    assert finish() == ("DONE", 4, 0, 0)
    names = ("last_name", "first_name", "email", "mobile", "language")
    assert list(Contact.objects.order_by("first_name").values_list(*names)) == [
        ("Müller", "Ada", "ada@x.example", "+41793992930", "de_CH"),
        ("Unknown", "Bob", "bob@x.example", "+41793992931", "de"),
        ("Roth", "Eve", "eve@x.example", "", "de"),
        ("Unknown", "Max", "max@x.example", "+41793992932", "de"),
    ]


def test_refused_cell_with_a_nul_is_shown_and_mended(org, redis):
    editor = person("editor", org, Role.OPERATOR)
    url = upload(editor, org, "lastName,email\nL,a\0b\n")
    assert finish() == ("DONE", 0, 0, 1)
    assert "Instead of a\ufffdb (1 row)" in editor.get(url).content.decode()
    mend(editor, url, "import", use_0_0="a@b.example")
    assert finish() == ("DONE", 1, 0, 0)


def test_rows_that_are_not_mended_are_skipped_and_reported(org, redis):
    editor = person("editor", org, Role.OPERATOR)
    url = odd(editor, org)
    mend(editor, url, "import", use_0_0="de")
    run = RecordImport.objects.get()
    assert list(imports.rejected_rows(run))[1:] == []  # no part is imported yet
    assert finish() == ("DONE", 1, 0, 3)
    assert [row[:2] for row in list(imports.rejected_rows(run))[1:]] == [
        ("3", "lastName"), ("4", "mobile"), ("5", "lastName"), ("5", "email"),
    ]  # fmt: skip
    assert "Deutsch" not in str(list(run.parts.values_list("problems", flat=True)))


def test_mend_of_an_earlier_check_is_refused(org, redis):
    editor = person("editor", org, Role.OPERATOR)
    url = odd(editor, org)
    seen = editor.get(url).context["form"]["seen"].value()
    mend(editor, url, "again", use_0_0="de")
    assert finish() == ("DONE", 1, 0, 3)
    for do in ("again", "import"):
        for fields in ({"seen": seen}, {"seen": seen, "use_0_0": "Unknown"}, {"empty_2": "on"}):
            shown = editor.post(url, {**fields, "do": do}, follow=True)
            assert "was checked again in the meantime" in shown.content.decode()
            assert not any(row.fields[0].value() for row in shown.context["form"].rows())
    run = RecordImport.objects.get()
    assert (run.state, run.dry_run) == ("DONE", True)


def test_second_press_of_a_button_does_not_cancel_the_import(org, redis):
    editor = person("editor", org, Role.OPERATOR)
    url = odd(editor, org)
    for do in ("again", "import", "columns", "discard"):
        assert editor.post(url, {"do": "again"}).status_code == 302
        assert editor.post(url, {"do": do}).status_code == 302
        assert finish() == ("DONE", 1, 0, 3)


def test_value_that_is_no_better_is_refused_at_its_field(org, redis):
    editor = person("editor", org, Role.OPERATOR)
    url = odd(editor, org)
    shown = mend(editor, url, "import", use_0_0="Swiss")
    assert shown.context["form"].errors == {"use_0_0": ["Is not a language like en_GB or de."]}
    assert RecordImport.objects.get().dry_run


def test_discarded_check_does_not_claim_that_rows_were_imported(org, redis):
    editor = person("editor", org, Role.OPERATOR)
    url = odd(editor, org)
    editor.post(url, {"do": "discard"})
    text = editor.get(url).content.decode()
    assert "Discarded, nothing imported" in text
    assert "Added" not in text
    assert "Discarded, nothing imported" in editor.get(page(Contact, "imports")).content.decode()
