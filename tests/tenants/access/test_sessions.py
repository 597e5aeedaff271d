"""Sessions end; a person who needs a second factor sees nothing before it."""

import os
import subprocess
import sys

import pytest
import time_machine
from allauth.mfa.models import Authenticator
from django.contrib.sessions.models import Session

from rme.core.cache import TtlCache
from rme.tenants.models import Organization
from tests import factories
from tests.service import ROOT
from tests.tenants.access.scene import browser, code_of, is_in, log_in, member, with_totp

pytestmark = pytest.mark.django_db
START = 1_900_000_000
POLL = {"X-Rme-Poll": "1"}
HOST, EVIL = "http://testserver", "http://evil.example"
SET_UP = "/admin/account/2fa/totp/activate/"


def at(seconds):
    return time_machine.travel(START + seconds, tick=False)


def test_an_idle_session_ends(org, settings):
    settings.SESSION_IDLE_SECONDS, settings.SESSION_SECONDS = 600, 6000
    member(org)
    client = browser()
    with at(0):
        log_in(client)
    for seconds in (500, 1000, 1599):
        with at(seconds):
            assert is_in(client)
    with at(2199):
        answer = client.get("/admin/messaging/message/")
    assert answer["Location"] == "/admin/login/?next=%2Fadmin%2Fmessaging%2Fmessage%2F"
    with at(2200):
        assert not is_in(client)


@pytest.mark.parametrize("is_over", [True, False], ids=["over", "deleted"])
def test_form_after_the_session_leads_back_to_its_page(org, settings, is_over):
    settings.SESSION_IDLE_SECONDS = 600
    member(org)
    client, page = browser(), "/admin/console/acme/send/"
    with at(0):
        log_in(client)
    if not is_over:
        Session.objects.all().delete()
    with at(700):
        ours = client.post("/admin/console/acme/pause/", headers={"Referer": f"{HOST}{page}"})
        foreign = client.post("/admin/console/acme/pause/", headers={"Referer": f"{EVIL}{page}"})
    assert ours["Location"] == "/admin/login/?next=%2Fadmin%2Fconsole%2Facme%2Fsend%2F"
    assert foreign["Location"] == "/admin/login/?next=/admin/console/acme/pause/"


@pytest.mark.parametrize("has_times", [True, False])
def test_polls_keep_no_session_alive(org, settings, has_times):
    settings.SESSION_IDLE_SECONDS, settings.SESSION_SECONDS = 600, 6000
    user, client, answers = member(org), browser(), {}
    with at(0):
        if has_times:
            log_in(client)
        else:
            client.force_login(user)  # as a release before began it
    for seconds in (0, 200, 400, 599, 600):
        with at(seconds):
            answers[seconds] = client.get("/admin/?organization=acme", headers=POLL)
    assert [each.status_code for each in answers.values()] == [200] * 4 + [302]
    assert answers[600]["Location"] == "/admin/login/?next=%2Fadmin%2F%3Forganization%3Dacme"
    with at(601):
        assert not is_in(client)


def test_person_beside_a_poll_stays_logged_in(org, settings):
    settings.SESSION_IDLE_SECONDS = 600
    member(org)
    client = browser()
    with at(0):
        log_in(client)
    for seconds in (500, 1000, 1500):
        with at(seconds):
            assert client.get("/admin/", headers=POLL).status_code == 200
            assert is_in(client)


def test_change_with_the_header_of_polls_counts_as_use(org, settings):
    settings.SESSION_IDLE_SECONDS = 600
    member(org)
    client = browser()
    with at(0):
        log_in(client)
    with at(500):
        client.post("/admin/messaging/message/", headers=POLL)
    with at(1000):
        assert is_in(client)


def test_a_session_in_use_ends_too_and_a_new_log_in_begins_a_new_one(org, settings):
    settings.SESSION_IDLE_SECONDS, settings.SESSION_SECONDS = 600, 1200
    member(org)
    client = browser()
    with at(0):
        log_in(client)
    found = []
    for seconds in range(300, 1501, 300):
        with at(seconds):
            found.append(is_in(client))
    assert found == [True, True, True, False, False]
    with at(1600):
        log_in(client)
        assert is_in(client)
    with at(2100):
        assert is_in(client)


def test_session_of_the_former_release_stays_valid(org):
    client = browser()
    client.force_login(member(org))
    assert is_in(client)
    assert is_in(client)


@pytest.mark.parametrize("everybody", [True, False])
def test_required_second_factor_redirects_to_its_setup(org, settings, everybody):
    settings.SECOND_FACTOR_REQUIRED = everybody
    Organization.objects.update(second_factor_required=not everybody)
    member(org, "OWNER")
    client = browser()
    log_in(client)
    for method, path in (("get", "/admin/"), ("get", "/admin/messaging/message/"),
                         ("post", "/admin/crm/contact/add/"), ("get", "/push-demo")):  # fmt: skip
        answer = getattr(client, method)(path)
        assert (path, answer.status_code, answer["Location"]) == (path, 302, SET_UP)
    setup = "/admin/account/2fa/totp/activate/"
    secret = client.get(setup).context["form"].secret
    client.post(setup, {"code": code_of(secret)})
    assert is_in(client)


def test_superusers_need_a_second_factor_if_required_by_settings(org, settings):
    settings.SUPERUSER_FACTOR_REQUIRED = True
    member(None, name="root", is_superuser=True)
    client = browser()
    log_in(client, "root")
    assert client.get("/admin/")["Location"] == SET_UP
    setup = "/admin/account/2fa/totp/activate/"
    secret = client.get(setup).context["form"].secret
    client.post(setup, {"code": code_of(secret)})
    assert is_in(client)
    member(org)
    other = browser()
    log_in(other)
    assert is_in(other)


@pytest.mark.parametrize(
    ("environment", "is_required"),
    [
        ({"BASE_URL": "https://rme.example"}, True),
        ({"BASE_URL": "http://10.0.0.5:8000"}, True),
        ({"BASE_URL": "http://localhost:8000"}, False),
        ({"BASE_URL": "http://[::1]:8000"}, False),
        ({}, False),
        ({"BASE_URL": "https://rme.example", "SUPERUSER_FACTOR_REQUIRED": "off"}, False),
        ({"SUPERUSER_FACTOR_REQUIRED": "on"}, True),
    ],
)
def test_superusers_need_a_second_factor_by_default_in_production(environment, is_required):
    code = "from rme import settings; print(settings.SUPERUSER_FACTOR_REQUIRED)"
    inherited = {k: v for k, v in os.environ.items() if k not in ("BASE_URL", "PORT")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**inherited, "ALLOWED_HOSTS": "*", **environment},
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert (done.stdout.strip(), done.returncode) == (str(is_required), 0), done.stderr


def test_second_factor_rule_of_another_organization_does_not_apply(org):
    factories.organization("other", second_factor_required=True)
    member(org)
    client = browser()
    log_in(client)
    assert is_in(client)


def test_required_second_factor_cannot_be_removed(org, settings):
    settings.SECOND_FACTOR_REQUIRED = True
    user = with_totp(member(org))
    client = browser()
    log_in(client)
    client.post("/admin/account/2fa/authenticate/", {"code": code_of()})
    client.post("/admin/account/reauthenticate/", {"password": "correct horse battery"})
    assert client.post("/admin/account/2fa/totp/deactivate/").status_code == 200
    assert Authenticator.objects.filter(user=user, type="totp").exists()
    settings.SECOND_FACTOR_REQUIRED = False
    TtlCache.clear_all()
    assert client.post("/admin/account/2fa/totp/deactivate/").status_code == 302
    assert not Authenticator.objects.filter(user=user).exists()
