"""No thread of a web process parses or renders a tenant's long text: errands do."""

import time
from functools import partial

import pytest

from messaging.console.studio import versions
from messaging.content import costly_steps, partials, previews, templates
from messaging.content.inputs import RenderInput
from messaging.models import Partial
from rme.core.process.errands import ERRANDS
from rme.tenants.organizations import get
from tests import factories
from tests.rest import Api, message

TAGS = "{% if a.b == 'c' %}{{ d | upcase | append: 'e' }}{% endif %}"
LONG = TAGS * 1500
"""Parsing it takes about half a second."""

pytestmark = pytest.mark.django_db


@pytest.fixture
def version(org):
    costly_steps.compile_mjml(org.pk, "<mjml><mj-body></mj-body></mjml>")  # a process has started
    ERRANDS.budget.forget()
    accepted(Api(org).call, "GET", "/templates")  # the first call imports all routes
    return factories.template(org, name="long", text=f"Hello {LONG}")


def accepted(call, *args):
    assert call(*args).status_code in (200, 202)


def steps(org, version):
    """Return what people and programs do with a template, by name."""
    ada = factories.contact(org)
    api = Api(org)
    draft = version
    Partial.objects.create(organization=org, name="footer", text="x")
    body = message(ada, template={"name": "long", "language": "en_US"})
    return {
        "accept": partial(accepted, api.send, body),
        "dry run": partial(accepted, api.call, "POST", "/messages?dryRun=true", body),
        "render": partial(
            previews.preview, get(org.pk), "long", RenderInput(channel="EMAIL", version=1)
        ),
        "draft": partial(previews.preview_texts, get(org.pk), draft, None, {}),
        "history": partial(versions.history, version.template),
        "partial": partial(partials.problems, org.pk, "footer", LONG),
        "version with a long partial": partial(
            costly_steps.check_versions,
            org.pk,
            [({"text": "{% render 'long' %}"}, {"long": LONG})],
        ),
        "activation": partial(templates.activate, version),
    }


NAMES = (
    *("accept", "dry run", "render", "draft", "history", "partial", "version with a long partial"),
    "activation",
)


def seconds_of_this_thread(step):
    before = time.thread_time()
    step()
    return time.thread_time() - before


@pytest.fixture(scope="module")
def parsing():
    """Return how long parsing takes where it is no errand."""
    return seconds_of_this_thread(
        partial(costly_steps.check_versions, None, [({"text": LONG}, {})])
    )


@pytest.mark.parametrize("name", NAMES)
def test_long_text_takes_no_time_of_the_thread(org, version, parsing, name):
    assert seconds_of_this_thread(steps(org, version)[name]) < parsing / 2
