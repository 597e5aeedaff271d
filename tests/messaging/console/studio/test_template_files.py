"""Import and export of templates in the console: an import shows first what it would do."""

from io import BytesIO

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from messaging.content.files import archives
from messaging.content.files.file_types import SourceFile
from messaging.models import Partial, TemplateVersion
from rme.tenants.models import Membership
from tests import audited, factories
from tests.messaging.console.conftest import url
from tests.messaging.console.studio.scene import client_of, words

pytestmark = pytest.mark.django_db
HEAD = "---\ncategory: TRANSACTIONAL\nsubject: Hi\n---\n"


@pytest.fixture
def org():
    return factories.organization()


@pytest.fixture
def ann(org):
    return client_of(Client, org, "ann")


def archive(**texts):
    made = BytesIO()
    files = [
        SourceFile(f"{name}/en_US.email.liquid", text.encode()) for name, text in texts.items()
    ]
    archives.write(files, made)
    return made.getvalue()


def upload(client, data):
    file = SimpleUploadedFile("t.zip", data, "application/zip")
    return client.post(url("template_import"), {"file": file})


def press(client, page, do):
    """Press a button below what an import would do."""
    return client.post(
        url("template_import"), {"archive": page.context["archive"], "do": do}, follow=True
    )


def test_import_shows_its_changes_before_applying_them(ann, org):
    factories.template(org, name="order", html="<p>One</p>")
    data = archive(order=f"{HEAD}<p>Two</p>\n", new=f"{HEAD}<p>New</p>\n")
    page = upload(ann, data)
    assert [(each.path, each.kind) for each in page.context["changes"]] == [
        ("new/en_US.email.liquid", "created"), ("order/en_US.email.liquid", "changed"),
    ]  # fmt: skip
    assert TemplateVersion.objects.count() == 1
    assert words(press(ann, page, "import")) == [
        "Imported: 1 created, 1 changed, 0 unchanged. Nothing is active yet."
    ]
    assert set(TemplateVersion.objects.filter(state="DRAFT").values_list("html", flat=True)) == {
        "<p>New</p>", "<p>Two</p>",
    }  # fmt: skip
    assert len(audited.summaries(action="ADDED", actor_name="ann")) == 3
    again = upload(ann, data)
    assert "All files match their templates." in again.content.decode()
    assert words(press(ann, again, "publish")) == [
        "Imported: 0 created, 0 changed, 2 unchanged. 2 made active."
    ]


def test_invalid_archive_is_reported_and_nothing_is_stored(ann):
    page = upload(ann, archive(new=f"{HEAD}<p>\n{{{{ x | no }}}}</p>\n"))
    (problem,) = page.context["problems"]
    assert problem[:4] == ("new/en_US.email.liquid", "unknown filter 'no'", "html", 6)
    assert "Nothing was imported." in page.content.decode()
    assert "is not a zip" in upload(ann, b"x").context["problems"][0].message
    assert upload(ann, b"0" * (archives.BYTES_LIMIT + 1)).context["form"].errors == {
        "file": ["The archive is larger than 3 MB."]
    }
    empty = ann.post(url("template_import"), {})
    assert empty.context["form"].errors == {"file": ["This field is required."]}
    for wrong in ("not base64!", "eA=="):
        answer = ann.post(url("template_import"), {"archive": wrong, "do": "import"})
        assert answer.context["problems"] != ()
    assert TemplateVersion.objects.count() == 0


def test_changed_partial_is_imported_as_a_draft(ann, org):
    Partial.objects.create(organization=org, name="footer", text="(c)")
    made = BytesIO()
    archives.write([SourceFile("_partials/footer.liquid", b"2027\n")], made)
    editor = client_of(Client, org, "ed", Membership.Role.TEMPLATE_EDITOR)
    page = upload(editor, made.getvalue())
    assert 'value="publish"' not in page.content.decode()
    assert press(editor, page, "publish").status_code == 403
    press(editor, page, "import")
    assert Partial.objects.get().text == "(c)"
    press(ann, upload(ann, made.getvalue()), "publish")
    assert Partial.objects.get().text == "2027"


def test_export_can_be_imported_unchanged(ann, org):
    factories.welcome(org)
    answer = ann.post(url("template_export"))
    assert answer["Content-Disposition"] == 'attachment; filename="templates-acme.zip"'
    data = b"".join(answer.streaming_content)
    assert {each.kind for each in upload(ann, data).context["changes"]} == {"unchanged"}
    assert audited.summaries(action="EXPORTED") == [("ann", "EXPORTED", "templates")]


def test_the_pages_ask_no_more_for_more(ann):
    def count(number):
        data = archive(**{f"t{each}": f"{HEAD}<p>{each}</p>\n" for each in range(number)})
        upload(ann, data)
        with CaptureQueriesContext(connection) as asked:
            assert upload(ann, data).context["problems"] == ()
        return len(asked)

    assert (count(1), count(5)) == (16, 16)


def test_stranger_gets_404(org):
    stranger = client_of(Client, factories.organization("other"), "eve")
    for name in ("template_import", "template_export"):
        assert stranger.post(url(name)).status_code == 404
