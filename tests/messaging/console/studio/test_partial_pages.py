"""Partials in the console: written as drafts, published by who may, and never broken in use."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from messaging.content import previews, samples, templates
from messaging.models import Partial, Template
from rme.tenants import organizations
from rme.tenants.models import Membership
from tests import audited, factories
from tests.messaging.console.conftest import url
from tests.messaging.console.studio.scene import client_of, do, press, save_partial, words

pytestmark = pytest.mark.django_db
Role = Membership.Role


def using(org):
    """Make a partial, one that uses it, and an active version that uses that."""
    inner = Partial.objects.create(organization=org, name="inner", text="inner")
    outer = Partial.objects.create(organization=org, name="outer", text="{% render 'inner' %}")
    version = factories.template(org, name="order", html="{% render 'outer' %}")
    return inner, outer, version


def test_new_partial_is_used_once_it_is_published(ann, org):
    added = ann.post(url("partials"), {"name": "footer"})
    assert added["Location"] == url("partial", "footer")
    partial = Partial.objects.get()
    assert "Nothing is written yet." in ann.get(url("partial", "footer")).content.decode()
    save_partial(ann, partial, "© {{ year }}")
    assert templates.partials(org.pk) == {}
    assert words(press(ann, partial, "publish")) == [
        "Version 1 is active. Templates use it within two seconds."
    ]
    template = Template.objects.get(name="welcome", channel="SMS")
    row = templates.add_draft(template, {"text": "Hi {% render 'footer', year: 2026 %}"})
    found = previews.preview_texts(organizations.get(org.pk), row, samples.PERSON, {})
    assert (found.rendered and found.rendered.text) == "Hi © 2026"
    assert words(do(ann, "publish", row)) == ["Version 2 is active."]
    assert audited.summaries(kind="messaging.partial") == [
        ("ann", "ADDED", ""),
        ("ann", "ADDED", "draft 1"),
        ("ann", "PUBLISHED", "version 1"),
    ]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("footer", "A partial named footer exists already."),
        ("", "This field is required."),
        ("a b", "Use letters, digits, - and _. Begin with a letter or digit."),
        ("x" * 65, "Ensure this value has at most 64 characters (it has 65)."),
        ("a\0b", "Null characters are not allowed."),
    ],
)
def test_name_that_cannot_be_is_refused_at_its_field(ann, org, name, error):
    Partial.objects.create(organization=org, name="footer", text="x")
    shown = ann.post(url("partials"), {"name": name})
    assert error in shown.context["form"].errors["name"]
    assert Partial.objects.count() == 1


def test_template_with_a_missing_partial_is_not_published(ann, org):
    template = Template.objects.get(name="welcome", channel="SMS")
    row = templates.add_draft(template, {"text": "Hi\n{% render 'footer' %}"})
    assert words(do(ann, "publish", row)) == ["text: there is no partial 'footer'"]
    row.refresh_from_db()
    assert row.state == "DRAFT"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "Enter the text of the partial."),
        ("{{ a", "text, line 1: '{{' is never closed"),
        ("<a href={{ a }}>", "text, line 1: a variable stands in a tag, outside of quotes"),
        ("{% render 'nope' %}", "text, line 1: there is no partial 'nope'"),
        ("{% render 'outer' %}", "text, line 1: the partial 'outer' renders itself"),
    ],
)
def test_text_that_breaks_is_refused_and_stays_in_the_form(ann, org, text, problem):
    inner, _, _ = using(org)
    shown = save_partial(ann, inner, text)
    assert shown.context["form"].errors["text"][0].startswith(problem)
    assert shown.context["form"]["text"].value() == text
    assert not inner.versions.exists()


def test_valid_partial_that_breaks_a_text_in_use_is_refused(ann, org):
    for n in range(1, 5):
        text = f"{{% render 'p{n + 1}' %}}" if n < 4 else "x"
        Partial.objects.create(organization=org, name=f"p{n}", text=text)
    inner, _, version = using(org)
    assert words(save_partial(ann, inner, "{% render 'p2' %}"))[0].startswith("Draft 2 is saved.")
    shown = save_partial(ann, inner, "{% render 'p1' %}")
    (problem,) = shown.context["form"].errors["text"]
    assert problem == f"{version}: html, line 1: partials in partials more than 5 deep"


def test_partial_in_use_is_not_deleted(ann, org):
    inner, outer, version = using(org)
    for row in (inner, outer):
        assert "there is no partial" in words(press(ann, row, "delete"))[0]
    assert Partial.objects.count() == 2
    templates.activate(templates.add_draft(version.template, {"text": "without"}))
    for row in (outer, inner):
        assert words(press(ann, row, "delete")) == [f"The partial {row.name} is deleted."]
    assert Partial.objects.count() == 0
    assert audited.summaries(action="DELETED") == [("ann", "DELETED", "")] * 2


def test_draft_of_another_person_is_kept_and_the_own_text_becomes_another_draft(ann, ben, org):
    footer = Partial.objects.create(organization=org, name="footer", text="Yours, Acme")
    save_partial(ben, footer, "Ben's")
    seen = {"version": 0, "revision": 0}
    shown = save_partial(ann, footer, "Ann's", **seen)
    (error,) = shown.context["form"].errors["text"]
    assert error.startswith("ben changed the draft in the meantime. Nothing was overwritten.")
    assert b"Ann&#x27;s" in shown.content
    assert b"Save as another draft" in shown.content
    assert footer.versions.get(state="DRAFT").text == "Ben's"
    save_partial(ann, footer, "Ann's", **seen, anew="1")
    assert list(footer.versions.order_by("version").values_list("version", "text")) == [
        (1, "Yours, Acme"), (2, "Ben's"), (3, "Ann's"),
    ]  # fmt: skip


def test_page_shows_the_draft_or_any_version_with_its_changes(ann, org):
    footer = Partial.objects.create(organization=org, name="footer", text="Yours,\nAcme")
    save_partial(ann, footer, "Yours,\nAcme Ltd")

    def page(number=""):
        context = ann.get(f"{url('partial', 'footer')}?version={number}").context
        changes = [(line.kind, line.text) for line in context["lines"] if line.kind != "place"]
        return context["form"]["text"].value(), changes

    same = ("same", " Yours,")
    assert page() == ("Yours,\nAcme Ltd", [same, ("removed", "-Acme"), ("added", "+Acme Ltd")])
    assert page(1) == ("Yours,\nAcme", [])
    for number in ("9", "x", "9" * 30):
        assert ann.get(f"{url('partial', 'footer')}?version={number}").status_code == 404


def test_editor_of_templates_changes_no_live_partial(org):
    editor = client_of(Client, org, "editor", Role.TEMPLATE_EDITOR)
    footer = Partial.objects.create(organization=org, name="footer", text="Yours, Acme")
    factories.template(org, name="news", text="Hi {% render 'footer' %}")
    unused = Partial.objects.create(organization=org, name="unused", text="x")
    save_partial(editor, footer, "Buy at evil.example")
    for act in ("publish", "approve", "delete"):
        for row in (footer, unused):
            assert press(editor, row, act).status_code == 403
            # nor by the route of those who write
            assert words(press(editor, row, act, publish=False)) == [
                "Nothing was done. Choose one of the buttons."
            ]
    footer.refresh_from_db()
    (draft,) = footer.versions.filter(state="DRAFT")
    assert (footer.text, draft.text) == ("Yours, Acme", "Buy at evil.example")
    assert Partial.objects.count() == 2
    approver = client_of(Client, org, "approver", Role.APPROVER)
    assert press(approver, unused, "delete").status_code == 403  # that needs both permissions
    assert save_partial(approver, footer, "x").status_code == 403


@pytest.mark.parametrize(("query", "is_open"), [("", False), ("?new=1", True)])
def test_form_of_a_new_partial_opens_by_its_address(ann, query, is_open):
    shown = ann.get(f"{url('partials')}{query}").content.decode()
    assert ('id="new" class="c-dialog" popover open' in shown) is is_open


def test_list_finds_partials_and_shows_their_state(ann, org):
    for name in ("banner", "footer", "header"):
        Partial.objects.create(organization=org, name=name, text="x", is_published=name != "banner")
    save_partial(ann, Partial.objects.get(name="footer"), "y")

    def listed(query=""):
        shown = ann.get(url("partials") + query).context["partials"]
        return {row.name: [text for text, _ in states] for row, _, states in shown}

    assert listed() == {
        "banner": ["Not published"], "footer": ["Active", "Draft 2"], "header": ["Active"],
    }  # fmt: skip
    assert list(listed("?q=EAD")) == ["header"]
    assert list(listed("?after=banner")) == ["footer", "header"]
    press(ann, Partial.objects.get(name="footer"), "request_review")
    assert listed()["footer"] == ["Active", "Draft 2", "Waiting for review"]


def test_list_and_page_ask_no_more_for_more(ann, org):
    def count(path):
        ann.get(path)
        with CaptureQueriesContext(connection) as asked:
            assert ann.get(path).status_code == 200
        return len(asked)

    def more(number):
        for each in range(number):
            row = Partial.objects.create(organization=org, name=f"p{number}x{each}", text="x")
            save_partial(ann, row, "y")
            save_partial(ann, footer, f"{number} {each}", anew="1")

    footer = Partial.objects.create(organization=org, name="footer", text="x")
    counts = []
    for number in (2, 12):
        more(number)
        counts.append((count(url("partials")), count(url("partial", "footer"))))
    assert counts[0] == counts[1]


def test_long_list_continues_on_another_page(ann, org):
    Partial.objects.bulk_create(
        Partial(organization=org, name=f"p{number:03}", text="x") for number in range(60)
    )
    first = ann.get(url("partials")).context
    assert ([row.name for row, *_ in first["partials"]][-1], first["following"]) == ("p049", "p049")
    second = ann.get(f"{url('partials')}?after=p049").context
    assert (next(row.name for row, *_ in second["partials"]), second["following"]) == ("p050", "")


def test_stranger_and_unknown_partial_get_404(org, ann):
    Partial.objects.create(organization=org, name="footer", text="x")
    other = client_of(Client, factories.organization("other"), "eve")
    for name in ("partial", "partial_publish"):
        form = {"do": "publish", "version": 0, "revision": 0}
        assert other.post(url(name, "footer"), form).status_code == 404
        assert other.post(url(name, "footer", org="other"), form).status_code == 404
        assert ann.post(url(name, "nothing"), form).status_code == 404
    assert other.get(url("partial", "footer")).status_code == 404
    assert other.get(url("partials")).status_code == 404
