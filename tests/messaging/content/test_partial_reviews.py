"""Partials have drafts and reviews: no way leads one person's text into live mail alone."""

import ast
from io import BytesIO

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.urls import reverse

from messaging.content import drafts, partials, publishing, templates
from messaging.content.files import archives
from messaging.content.files.file_types import FilesRefused, SourceFile
from messaging.content.files.push import push
from messaging.models import Partial, PartialVersion, SendingRules
from messaging.policy import organization_policy
from rme.core.errors import InvalidPayload
from rme.tenants.audit import COMMAND_LINE, Actor
from rme.tenants.models import Membership, User
from tests import audited, factories
from tests.messaging.console.conftest import url
from tests.messaging.console.studio.scene import press, save_partial
from tests.service import ROOT
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db
ANN, BOB = Actor(7, "ann"), Actor(8, "bob")
EVIL = "Buy at evil.example"
FILE = SourceFile("_partials/footer.liquid", f"{EVIL}\n".encode())
WRITER = "messaging/content/partials.py"
"""The module that stores partials."""


@pytest.fixture
def footer(org):
    SendingRules.objects.create(organization=org, review_templates=True)
    organization_policy.forget(org.pk)
    row = Partial.objects.create(organization=org, name="footer", text="Yours, Acme")
    factories.template(org, name="news", text="Hi {% render 'footer' %}")
    return row


@pytest.fixture
def ann(org):
    return person("ann", org, Membership.Role.OPERATOR)


def versions_of(row):
    rows = row.versions.order_by("version")
    return list(rows.values_list("version", "state", "text", "edited_by", "approved_by"))


# --- the ways that one person has ----------------------------------------------------------------
def by_the_form(ann, row, folder):
    save_partial(ann, row, EVIL)


def by_publishing_the_own_draft(ann, row, folder):
    save_partial(ann, row, EVIL)
    press(ann, row, "publish")


def by_approving_the_own_draft(ann, row, folder):
    save_partial(ann, row, EVIL)
    press(ann, row, "request_review")
    press(ann, row, "approve")
    press(ann, row, "publish")


def by_deleting_and_adding_it_again(ann, row, folder):
    press(ann, row, "delete")
    ann.post(url("partials"), {"name": "footer"})
    for each in Partial.objects.exclude(pk=row.pk):
        save_partial(ann, each, EVIL)
        press(ann, each, "publish")


def by_changing_what_was_approved(ann, row, folder):
    by_the_form(ann, row, folder)
    draft = row.versions.get(state="DRAFT")
    publishing.approve([draft], BOB)
    save_partial(ann, row, f"{EVIL}!")
    press(ann, row, "publish")


def by_a_zip(ann, row, folder):
    for do in ("import", "publish", "publish"):
        archive = BytesIO()
        archives.write([FILE], archive)
        url = reverse("console:template_import", args=[row.organization_id])
        shown = ann.post(url, {"file": SimpleUploadedFile("t.zip", archive.getvalue())})
        ann.post(url, {"archive": shown.context["archive"], "do": do})


def by_the_command(ann, row, folder):
    path = folder / FILE.path
    path.parent.mkdir()
    path.write_bytes(FILE.content)
    args = ["templates", "push", str(folder), "--organization", row.organization_id]
    call_command(*args)
    with pytest.raises(CommandError, match="must approve it"):
        call_command(*args, "--publish")


def by_pushing_files(ann, row, folder):
    user = Actor(User.objects.get(username="ann").pk, "ann")
    for publish in (False, True):
        try:
            push(row.organization_id, [FILE], user, publish=publish)
        except FilesRefused as error:
            assert publish
            assert "must approve it" in str(error)


WAYS = [value for name, value in list(globals().items()) if name.startswith("by_")]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_live_partial_cannot_be_changed_by_one_person(org, ann, footer, tmp_path, way):
    way(ann, footer, tmp_path)
    templates.forget_partials(org.pk)
    assert templates.partials(org.pk) == {"footer": "Yours, Acme"}
    is_drafted = any(text.startswith(EVIL) for _, _, text, _, _ in versions_of(footer))
    assert is_drafted is (way is not by_deleting_and_adding_it_again)  # one in use isn't deleted


def test_new_partial_is_not_seen_before_another_person_publishes_it(org, ann, footer):
    assert ann.post(url("partials"), {"name": "banner"}).status_code == 302
    banner = Partial.objects.get(name="banner")
    save_partial(ann, banner, EVIL)
    press(ann, banner, "publish")
    templates.forget_partials(org.pk)
    assert "banner" not in templates.partials(org.pk)
    with pytest.raises(InvalidPayload):
        factories.template(org, name="uses", text="{% render 'banner' %}")
    press(person("bob", org, Membership.Role.APPROVER), banner, "publish")
    assert templates.partials(org.pk)["banner"] == EVIL


def test_only_one_module_writes_texts_of_partials():
    """Find what calls a method that stores on `Partial`, so that no new way passes the review."""
    stores = {"create", "bulk_create", "update", "bulk_update", "update_or_create", "get_or_create"}
    writers = set()
    for path in [*ROOT.glob("messaging/**/*.py"), *ROOT.glob("rme/**/*.py")]:
        if "migrations" in path.parts:
            continue
        source = path.read_text()
        if "Partial" not in source:
            continue
        names = {
            ast.unparse(node) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)
        }
        is_writer = any(
            name.startswith("Partial(")
            or (name.startswith("Partial.objects") and any(f".{each}(" in name for each in stores))
            for name in names
        )
        if is_writer:
            writers.add(str(path.relative_to(ROOT)))
    assert writers == {WRITER}


# --- the life of a partial -----------------------------------------------------------------------
def test_draft_is_reviewed_published_and_rolled_back(org, ann, footer):
    bob = person("bob", org, Membership.Role.APPROVER)
    save_partial(ann, footer, "Yours truly")
    press(ann, footer, "request_review")
    assert "Waiting for review" in ann.get(url("partials")).content.decode()
    press(bob, footer, "approve")
    press(ann, footer, "publish")
    assert versions_of(footer) == [
        (1, "ARCHIVED", "Yours, Acme", "", ""),
        (2, "ACTIVE", "Yours truly", "ann", "bob"),
    ]
    assert templates.partials(org.pk) == {"footer": "Yours truly"}
    press(ann, footer, "publish", version=1)
    assert templates.partials(org.pk) == {"footer": "Yours, Acme"}  # rolling back never waits
    assert [each[1:] for each in audited.summaries() if each[0] == "bob"] == [
        ("APPROVED", "version 2")
    ]


def test_draft_changed_during_review_is_not_approved(org, footer):
    read = partials.save(footer, "good", ANN, drafts.Seen())
    partials.save(footer, EVIL, ANN, drafts.Seen(read.version, read.revision))
    with pytest.raises(drafts.DraftChanged):
        publishing.approve([read], BOB)
    with pytest.raises(drafts.DraftChanged):
        partials.publish(read, BOB)
    assert templates.partials(org.pk) == {"footer": "Yours, Acme"}
    assert not PartialVersion.objects.exclude(approved_by="").exists()


def test_discarded_draft_is_gone(ann, footer):
    save_partial(ann, footer, "Yours truly")
    press(ann, footer, "discard")
    assert versions_of(footer) == [(1, "ACTIVE", "Yours, Acme", "", "")]


def test_text_of_the_release_before_becomes_a_version(org, footer):
    partials.publish(partials.save(footer, "second", ANN, drafts.Seen()), BOB)
    Partial.objects.filter(pk=footer.pk).update(text="by the release before")
    footer.refresh_from_db()
    partials.publish(partials.save(footer, "fourth", ANN, drafts.Seen()), BOB)
    assert [each[1:3] for each in versions_of(footer)] == [
        ("ARCHIVED", "Yours, Acme"),
        ("ARCHIVED", "second"),
        ("ARCHIVED", "by the release before"),
        ("ACTIVE", "fourth"),
    ]


@pytest.mark.parametrize(
    "form", [{"do": ""}, {"do": "steal"}, {"do": "publish", "version": "9" * 30}]
)
def test_unknown_button_or_version_does_nothing(ann, footer, form):
    assert press(ann, footer, **form).status_code == 200
    assert versions_of(footer) == []


def test_program_and_person_without_review_publish_at_once(org, ann):
    row = Partial.objects.create(organization=org, name="footer", text="Yours, Acme")
    save_partial(ann, row, "Ann's")
    press(ann, row, "publish")
    assert templates.partials(org.pk) == {"footer": "Ann's"}
    push(org.pk, [SourceFile("_partials/footer.liquid", b"push\n")], COMMAND_LINE, publish=True)
    assert templates.partials(org.pk) == {"footer": "push"}
