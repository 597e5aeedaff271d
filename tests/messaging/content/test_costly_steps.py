"""Steps on versions that may take long, in processes that can be killed and on a budget."""

import time

import pytest

from messaging.content import costly_steps, previews
from messaging.content.inputs import RenderInput
from messaging.content.rendering import RenderLimit, TemplateSyntax, VersionToRender
from rme.core import errors
from rme.core.process.errands import ERRANDS
from rme.tenants.organizations import get
from tests import factories
from tests.messaging.console.conftest import url
from tests.messaging.console.studio.scene import client_of, form

MJML = "<mjml><mj-body><mj-section><mj-column>{}</mj-column></mj-section></mj-body></mjml>"
TEXT = MJML.format("<mj-text>Hello {{ contact.first_name }}</mj-text>")
ENDLESS = (
    "{% assign t = 'abcabc' %}{% for i in (1..13) %}{% assign t = t | append: t %}{% endfor %}"
    "{% for i in (1..9000) %}{% assign u = t | replace: 'a', 'b' | split: 'B' | join: 'x' %}"
    "{% endfor %}"
)


def test_step_runs_in_another_process():
    many = MJML.format("<mj-text>x</mj-text>" * 900)
    costly_steps.compile_mjml("acme", TEXT)  # the process has started
    used = []
    for _ in range(5):  # threads that other tests left behind compute too
        ERRANDS.budget.forget()
        before = time.process_time()
        html = costly_steps.compile_mjml("acme", many)
        used.append(time.process_time() - before)
        assert html.count(">x</div>") == 900
    assert min(used) < 0.1


def test_steps_raise_the_errors_of_rendering():
    with pytest.raises(TemplateSyntax):
        costly_steps.compile_mjml("acme", "<mjml>")
    with pytest.raises(RenderLimit):
        costly_steps.render("acme", VersionToRender("EMAIL", {"text": ENDLESS}, {}, {}))
    ((problems, html),) = costly_steps.check_versions("acme", [({"mjml": "<mjml>"}, {})])
    assert [(each.field, html) for each in problems] == [("mjml", "")]


def test_versions_together_are_one_errand_and_a_worker_has_no_budget():
    good, bad = {"mjml": TEXT}, {"text": "{% if %}"}
    ERRANDS.budget.charge("acme", 4.9)
    first, second = costly_steps.check_versions("acme", [(good, {}), (bad, {})])
    assert (first.problems, "Hello {{ contact.first_name }}" in first.html) == ([], True)
    assert [each.field for each in second.problems] == ["text"]
    ERRANDS.budget.charge("acme", 100.0)
    with pytest.raises(errors.RateLimited):
        costly_steps.check_versions("acme", [(good, {})])
    assert costly_steps.check_versions(None, [(good, {}), (bad, {})]) == [first, second]


@pytest.mark.django_db
def test_render_is_charged_to_its_organization(org):
    factories.template(org, name="slow", text=ENDLESS)
    record, wanted = get(org.pk), RenderInput(channel="EMAIL")
    with pytest.raises(errors.InvalidPayload, match="takes too long"):
        previews.preview(record, "slow", wanted)
    ERRANDS.budget.charge(org.pk, 100.0)
    with pytest.raises(errors.RateLimited):
        previews.preview(record, "slow", wanted)


@pytest.mark.django_db
def test_studio_reports_an_exhausted_budget(client, org):
    version = factories.template(org, name="mail", text="x")
    person = client_of(type(client), org, "ada")
    given = form(version, mjml=TEXT, text="")
    shown = person.post(url("template_preview", "mail"), given)
    assert (shown.status_code, shown.json()["problems"]) == (200, [])
    ERRANDS.budget.charge(org.pk, 100.0)
    shown = person.post(url("template_preview", "mail"), given)
    assert shown.status_code == 429
    assert "used all the computing time" in shown.json()["errors"][0]["message"]
