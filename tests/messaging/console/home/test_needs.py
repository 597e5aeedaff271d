"""The buttons of needs, as each role has them."""

import pytest

from messaging.console.home import needs
from messaging.content import templates
from messaging.domain.attention import Finding, Severity
from messaging.models import Pause, Template, TemplateVersion
from messaging.reports import checks, open_tasks
from messaging.reports.checks import Check
from rme.core.cache import TtlCache
from rme.core.db import clock
from rme.crm.models import RecordImport
from rme.tenants.access.roles import PERMISSIONS
from tests import factories
from tests.messaging.console.conftest import url
from tests.messaging.webhooks.webhook_scene import endpoint
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def findings(org):
    """Return a finding for each page that mends something."""
    pause = Pause.objects.create(organization=org, reason="maintenance", channel="SMS")
    rejected = RecordImport.objects.create(
        organization=org, kind="Contact", name="people.csv", state="DONE", rows=2, done=2,
        rejected=1, finished_at=clock.now(),
    )  # fmt: skip
    hook = endpoint(org, "https://hooks.example.com/")
    rows = {"PAUSED": pause.pk, "IMPORT_REJECTED": rejected.pk, "WEBHOOK_FAILING": hook.pk}
    codes = (
        "NO_SENDER_DOMAIN", "TEMPLATE_WITHOUT_LANGUAGE", "PROGRAM_UNCONFIRMED", "HELD_UNKNOWN",
        "BACKLOG_LATE", "PRIVACY_REQUEST_OVERDUE", "REVIEW_WAITING", "NO_PROVIDER", *rows,
    )  # fmt: skip
    return [
        Finding(org.pk, Severity.WARNING, code, code, rows.get(code), "Contact") for code in codes
    ]


@pytest.mark.parametrize(
    ("role", "without_button", "hidden"),
    [
        ("OWNER", set(), set()),
        ("OPERATOR", {"PROGRAM_UNCONFIRMED"}, set()),
        ("VIEWER", {"PROGRAM_UNCONFIRMED"}, set()),
        ("DEVELOPER", {"PRIVACY_REQUEST_OVERDUE"}, {"IMPORT_REJECTED"}),
    ],
)
def test_needs_have_buttons_to_open_pages_only(org, findings, role, without_button, hidden):
    client = person("p", org, role)
    shown = needs.of_organization(findings, PERMISSIONS[role])
    assert {each.code for each in findings} - {each.text for each in shown} == hidden
    assert {each.text for each in shown if not each.button} == without_button
    statuses = {each.text: client.get(each.url).status_code for each in shown if each.button}
    assert set(statuses.values()) == {200}, statuses


def test_review_of_one_template_leads_to_its_page(org):
    permissions, owner = PERMISSIONS["OWNER"], person("o", org, "OWNER")
    urls = []
    for name in ("news", "news", "order"):
        TtlCache.clear_all()
        factories.template(org, name=name, language="en_US" if urls else "de")
        template = Template.objects.filter(name=name).latest("pk")
        templates.add_draft(template, {"subject": "New", "html": "<p>New</p>"})
        TemplateVersion.objects.filter(state="DRAFT").update(review_by="ada")
        (need,) = needs.of_organization(open_tasks.reviews([org.pk]), permissions)
        urls.append((need.text, need.url))
        html = owner.get("/admin/").content.decode()
        assert f'href="{need.url}" aria-label="Review: {need.text}"' in html
    assert urls == [
        ("1 draft waits for a review.", url("template", "news")),
        ("2 drafts wait for a review.", url("template", "news")),
        ("3 drafts wait for a review.", url("templates") + "?state=review"),
    ]


def test_home_shows_no_name_of_a_peoples_file_to_a_developer(org, findings):
    pages = {
        role: person(role, org, role).get("/admin/").content.decode()
        for role in ("VIEWER", "DEVELOPER")
    }
    assert [role for role, html in pages.items() if "people.csv" in html] == ["VIEWER"]


@pytest.mark.parametrize(
    ("role", "verbs"),
    [("OPERATOR", {"End pause", "Review messages"}), ("VIEWER", set()), ("DEVELOPER", set())],
)
def test_button_says_what_the_person_may_do(org, findings, role, verbs):
    shown = needs.of_organization(findings, PERMISSIONS[role])
    buttons = {each.button for each in shown}
    acting = {"End pause", "Review messages", "Add a domain", "Add a provider", "Verify domain"}
    assert buttons & acting == verbs
    assert {"See pause", "See domains", "See providers"} - buttons == (
        {"See pause"} if "End pause" in verbs else set()
    )
    home = person("p", org, role).get("/admin/").content.decode()
    assert ("End pause" in home) is ("End pause" in verbs)
    assert "pause</a>" in home


def test_problem_of_the_deployment_has_a_button_to_its_effects_only(org):
    results = {
        "database": Check(
            checks.OK, 1.0, "PostgreSQL restarted 4 min ago (27 Nov 2026, 20:00 UTC)"
        ),
        "redis": Check(checks.DOWN, 1.0, "doesn't answer (ConnectionError)"),
        "workers": Check(checks.DOWN, 1.0, "No worker is running, so nothing is sent."),
    }
    assert [(each.text, each.button) for each in needs.of_deployment(results, org.pk)] == [
        ("Database: PostgreSQL restarted 4 min ago.", ""),
        ("Redis: doesn't answer (ConnectionError).", ""),
        ("No worker is running, so nothing is sent.", "See waiting messages"),
    ]
