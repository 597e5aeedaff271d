"""Templates go to files and back: what is pulled and pushed changes nothing."""

import re

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.content import drafts, templates
from messaging.content.files import pull
from messaging.content.files.file_types import FileChange, FilesRefused, SourceFile
from messaging.content.files.push import push
from messaging.models import Partial, PartialVersion, SendingRules, Template, TemplateVersion
from messaging.policy import organization_policy
from rme.tenants.audit import COMMAND_LINE, Actor
from tests import audited, factories
from tests.service import ROOT

pytestmark = pytest.mark.django_db
ANN = Actor(7, "ann")
SCHEMA = {
    "type": "object",
    "properties": {"note": {"type": "string", "examples": ["no", "2026-01-01"]}},
}
PUSH = {
    "title": "Hi",
    "body": "Two\nlines\n",
    "data": {"k": "{{ note }}"},
    "badge": 3,
    "image": "https://a.example/i.png",
}


def file(path, text):
    return SourceFile(path, text.encode())


def email(html="<p>Hello</p>", *, head="", path="new/en_US.email.liquid"):
    return file(path, f"---\ncategory: TRANSACTIONAL\nsubject: Hi\n{head}---\n{html}\n")


def refusals(org, *files, **options):
    with pytest.raises(FilesRefused) as found:
        push(org.pk, files, ANN, **options)
    return [str(each) for each in found.value.problems]


@pytest.fixture
def org():
    return factories.organization()


@pytest.fixture
def filled(org):
    """Make templates with each kind of text."""
    Partial.objects.create(organization=org, name="footer", text="(c) {{ name }}")
    html = "<p>{{ note }}</p>\r\n{% render 'footer', name: 'x' %}"
    factories.template(org, name="order", html=html, text="  lead\ntail  ", variables=SCHEMA)
    factories.template(org, name="order", language="de", html="<p>\n\n")
    factories.template(org, "PUSH", name="order", **PUSH)
    factories.template(org, "SMS", name="order.short", text="Hi {{ note }} \n")
    body = "<mj-body><mj-raw><p>{{ note }}</p></mj-raw></mj-body>"
    factories.template(org, name="round", html="", mjml=f"<mjml>{body}</mjml>")
    factories.template(org, name="plain", html="", text="only")
    return org


def command(*args, capsys):
    call_command("templates", *args)
    return capsys.readouterr().out.splitlines()


def test_round_trip_changes_nothing(filled, tmp_path, capsys):
    other = factories.organization("other")
    first = dict(pull.pull(filled.pk))
    assert sorted(first) == [
        "_partials/footer.liquid", "order.short/en_US.sms.liquid", "order/de.email.liquid",
        "order/en_US.email.liquid", "order/en_US.push.liquid", "plain/en_US.email.liquid",
        "round/en_US.email.liquid",
    ]  # fmt: skip
    pushed = push(filled.pk, [SourceFile(*each) for each in first.items()], ANN)
    assert {each.kind for each in pushed} == {"unchanged"}
    made = command("pull", str(tmp_path), "--organization", "acme", capsys=capsys)
    assert {line.split()[0] for line in made} == {"created"}
    done = command("push", str(tmp_path), "--organization", "other", "--publish", capsys=capsys)
    assert done[1] == "created   order.short/en_US.sms.liquid and made active"
    assert dict(pull.pull(other.pk)) == first  # nothing was lost on the way
    again = command("pull", str(tmp_path), "--organization", "other", capsys=capsys)
    assert {line.split()[0] for line in again} == {"unchanged"}
    twice = command("push", str(tmp_path), "--organization", "other", "--publish", capsys=capsys)
    assert {line.split()[0] for line in twice} == {"unchanged"}
    active = TemplateVersion.objects.filter(template__organization=other, state="ACTIVE")
    assert active.count() == 6


def test_a_push_makes_drafts_and_publishing_makes_them_active(org):
    row = factories.template(org, name="order", html="<p>One</p>")
    files = [email("<p>Two</p>", path="order/en_US.email.liquid"), email()]
    assert push(org.pk, files, ANN, dry_run=True) == [
        FileChange("new/en_US.email.liquid", "created"),
        FileChange("order/en_US.email.liquid", "changed"),
    ]
    assert (Template.objects.count(), TemplateVersion.objects.count()) == (1, 1)
    push(org.pk, files, ANN)
    drafts_made = TemplateVersion.objects.filter(state="DRAFT").order_by("template__name")
    assert [(each.html, each.version, each.edited_by) for each in drafts_made] == [
        ("<p>Hello</p>", 1, "ann"), ("<p>Two</p>", 2, "ann"),
    ]  # fmt: skip
    assert (
        audited.summaries(kind="messaging.templateversion")
        == [("ann", "ADDED", "draft of a file")] * 2
    )
    done = push(org.pk, files, ANN, publish=True)
    assert [(each.kind, each.is_published) for each in done] == [("unchanged", True)] * 2
    row.refresh_from_db()
    assert row.state == "ARCHIVED"
    assert set(templates.find_active(org.pk, ["order", "new"])) == {
        ("order", "en_US", "EMAIL"), ("new", "en_US", "EMAIL"),
    }  # fmt: skip


def test_a_draft_of_another_person_is_not_overwritten(org):
    row = factories.template(org, name="order", html="<p>One</p>")
    theirs = drafts.save(row.template, {"html": "<p>Ben</p>"}, Actor(8, "ben"), drafts.Seen(1))
    path = "order/en_US.email.liquid"
    push(org.pk, [email("<p>Two</p>", path=path)], ANN)
    push(org.pk, [email("<p>Three</p>", path=path)], ANN)
    rows = TemplateVersion.objects.filter(template=row.template).order_by("version")
    assert [(each.html, each.edited_by, each.revision) for each in rows] == [
        ("<p>One</p>", "", 1), ("<p>Ben</p>", "ben", theirs.revision), ("<p>Three</p>", "ann", 2),
    ]  # fmt: skip


def test_unparsable_files_are_rejected_with_file_line_and_field(org):
    broken = email("<p>\n{{ note | nonsense }}</p>", head="text: |\n  a\n  {% if %}\n")
    assert refusals(org, broken, email(path="fine/en_US.email.liquid")) == [
        "new/en_US.email.liquid, line 6, text: missing expression",
        "new/en_US.email.liquid, line 9, html: unknown filter 'nonsense'",
    ]
    assert Template.objects.count() == 0
    wrong = "---\ncategory: NONE\nbadge: x\nformat: htm\nsubjet: S\n---\n"
    assert refusals(org, file("new/en_US.email.liquid", wrong)) == [
        "new/en_US.email.liquid, line 4, format: is not html, mjml or text",
        "new/en_US.email.liquid, line 3, badge: EMAIL has no such field",
        "new/en_US.email.liquid, line 5, subjet: EMAIL has no such field",
    ]
    assert refusals(org, email(path="new/xx_XX.email.liquid")) == [
        "new/xx_XX.email.liquid, language: This language or country doesn't exist."
    ]
    assert refusals(org, email(path="a b/en.email.liquid"), email(path="a/en.fax.liquid")) == [
        f"{path}: is not a path like welcome/en_US.email.liquid or _partials/footer.liquid"
        for path in ("a b/en.email.liquid", "a/en.fax.liquid")
    ]
    category = file("new/en_US.sms.liquid", "---\ncategory: NONE\n---\nx\n")
    assert refusals(org, category)[0].startswith(
        "new/en_US.sms.liquid, line 2, category: This category doesn't exist. Choose one of "
    )
    assert refusals(org, email(head="subject: 'x'\n"))[0].endswith("subject: appears twice")
    assert refusals(org, email(head="variables: {type: 5}\n"))[0].startswith(
        "new/en_US.email.liquid, line 4, variables: "
    )
    binary = SourceFile("new/en_US.sms.liquid", b"\xff")
    assert refusals(org, binary) == ["new/en_US.sms.liquid: is not text in UTF-8"]


def test_pushed_partials_are_drafts_until_they_are_published(org):
    uses = email("<p>{% render 'top', a: 1 %}</p>")
    push(org.pk, [file("_partials/top.liquid", "{{ a }}\n"), uses], ANN)
    assert templates.partials(org.pk) == {}
    published = push(org.pk, [file("_partials/top.liquid", "{{ a }}\n"), uses], ANN, publish=True)
    assert [(each.kind, each.is_published) for each in published] == [("unchanged", True)] * 2
    changed = file("_partials/top.liquid", "{{ a }}!\n")
    assert [each.kind for each in push(org.pk, [changed], ANN)] == ["changed"]
    assert Partial.objects.get().text == "{{ a }}"
    assert dict(pull.pull(org.pk))["_partials/top.liquid"] == b"{{ a }}!\n"
    push(org.pk, [changed], ANN, publish=True)
    assert templates.partials(org.pk) == {"top": "{{ a }}!"}
    worse = file("_partials/top.liquid", "<a {{ a }}>\n")
    assert refusals(org, worse, publish=True)[0].startswith("_partials/top.liquid, line 1: ")
    deeper = [file("_partials/top.liquid", "{% render 'gone' %}\n")]
    assert refusals(org, *deeper, publish=True)
    rows = PartialVersion.objects.order_by("version").values_list("text", "state", "edited_by")
    assert list(rows) == [("{{ a }}", "ARCHIVED", "ann"), ("{{ a }}!", "ACTIVE", "ann")]


def test_a_review_is_asked_for_of_files_too(org):
    SendingRules.objects.create(organization=org, review_templates=True)
    organization_policy.forget(org.pk)
    for actor in (ANN, COMMAND_LINE):
        with pytest.raises(FilesRefused) as found:
            push(org.pk, [email()], actor, publish=True)
        assert "must approve it" in str(found.value)
    push(org.pk, [email()], COMMAND_LINE)
    assert push(org.pk, [email()], ANN, publish=True)[0].is_published  # who wrote none of it


def test_the_statements_do_not_grow_with_the_files(org):
    def count(call):
        with CaptureQueriesContext(connection) as asked:
            call()
        return len(asked)

    def files(number):
        made = [email(f"<p>{each}</p>", path=f"t{number}-{each}/en_US.email.liquid")
                for each in range(number)]  # fmt: skip
        return [*made, *(file(f"_partials/p{number}-{n}.liquid", "x\n") for n in range(number))]

    organization_policy.of(org.pk)
    first = [count(lambda n=n: push(org.pk, files(n), ANN)) for n in (2, 6)]
    changed = [
        [email("<p>new</p>", path=each.path) for each in files(n) if "_" not in each.path[:1]]
        for n in (2, 6)
    ]
    later = [count(lambda each=each: push(org.pk, each, ANN, publish=True)) for each in changed]
    pulled = count(lambda: list(pull.pull(org.pk)))
    assert (first, later, pulled) == ([17, 17], [20, 20], 3)


def test_documented_example_can_be_imported(org, tmp_path, capsys):
    text = (ROOT / "docs" / "templates.md").read_text()
    (path,) = re.findall(r"`(\S+\.email\.liquid)`:\n", text)
    (example,) = re.findall(r"email\.liquid`:\n\n```liquid\n(.*?)```", text, re.DOTALL)
    target = tmp_path / path
    target.parent.mkdir()
    target.write_text(example)
    (partial,) = re.findall(r"`(_partials/\S+\.liquid)`", text)
    (tmp_path / "_partials").mkdir()
    (tmp_path / partial).write_text("{{ name }}\n")
    args = [str(tmp_path), "--organization", "acme"]
    done = command("push", *args, "--publish", capsys=capsys)
    assert done == [f"created   {partial} and made active", f"created   {path} and made active"]
    command("pull", *args, capsys=capsys)
    assert target.read_text() == example


def test_command_reports_errors_and_leaves_other_files_alone(filled, tmp_path, capsys):
    with pytest.raises(CommandError, match="There is no organization nobody"):
        call_command("templates", "pull", str(tmp_path), "--organization", "nobody")
    with pytest.raises(CommandError, match="There is no file that ends with"):
        call_command("templates", "push", str(tmp_path), "--organization", "acme")
    mine = tmp_path / "mine" / "en_US.email.liquid"
    mine.parent.mkdir()
    mine.write_text("x")
    told = command("pull", str(tmp_path), "--organization", "acme", "--dry-run", capsys=capsys)
    assert told[-1] == "not there mine/en_US.email.liquid"
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    with pytest.raises(CommandError, match=r"mine/en_US\.email\.liquid, line 1: does not begin"):
        call_command("templates", "push", str(tmp_path), "--organization", "acme")
