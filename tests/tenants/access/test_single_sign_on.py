"""Single sign-on against a real provider: django-oauth-toolkit in a process of its own."""

import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
import requests
from allauth.socialaccount.models import SocialAccount

from rme.tenants.models import User
from tests.service import ROOT, free_port
from tests.tenants.access.scene import CODE, PASSWORD, browser, is_in, log_in, member, with_totp

pytestmark = pytest.mark.django_db
START = "/admin/account/oidc/sso/login/"
CALLBACK = f"http://testserver{START}callback/"


@contextmanager
def provider(settings, email="sam@example.com", verified="true", callback=CALLBACK):
    """Run a provider and set it up; it logs a person with this address in.

    `verified` is the claim `email_verified` as JSON; empty: there is none.
    """
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "tests.fakes.oidc_provider",
        str(port),
        callback,
        email,
        verified,
    ]
    process = subprocess.Popen(command, cwd=ROOT)
    issuer = f"http://127.0.0.1:{port}"
    app = {"provider_id": "sso", "name": "Acme ID", "client_id": "console",
           "secret": "console-secret", "settings": {"server_url": issuer}}  # fmt: skip
    settings.OIDC_URL, settings.OIDC_NAME = issuer, "Acme ID"
    settings.SOCIALACCOUNT_PROVIDERS = {
        "openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": [app]}
    }
    try:
        wait_for(f"{issuer}/.well-known/openid-configuration")
        yield issuer
    finally:
        process.kill()
        process.wait()


def wait_for(url):
    until = time.monotonic() + 60
    while True:
        try:
            return requests.get(url, timeout=5).raise_for_status()
        except requests.ConnectionError:
            assert time.monotonic() < until, "the provider did not start"
            time.sleep(0.1)


def back_from(client, start=START):
    """Go to the provider; return the path to which it sends the browser back."""
    there = client.post(start)
    back = requests.get(there["Location"], allow_redirects=False, timeout=20)
    assert back.status_code == 302, back.text
    assert back.headers["Location"].startswith(CALLBACK)
    return back.headers["Location"].removeprefix("http://testserver")


def sign_on(client, start=START):
    """Go to the provider, and come back; return the answer to what it sent along."""
    return client.get(back_from(client, start))


def test_people_are_found_by_their_verified_address_and_then_by_their_id(org, settings):
    user = member(org)
    with provider(settings):
        assert b"Continue with Acme ID" in browser().get("/admin/login/").content
        client = browser()
        assert sign_on(client)["Location"] == "/admin/"
        assert is_in(client)
        User.objects.update(email="renamed@example.com")
        again = browser()
        sign_on(again)
        assert is_in(again)
        assert list(SocialAccount.objects.values_list("user_id", flat=True)) == [user.pk]
        with_totp(user)
        assert sign_on(browser())["Location"] == CODE  # a second factor is asked for here, too
        User.objects.update(is_active=False)
        refused = browser()
        sign_on(refused)
        assert not is_in(refused)


@pytest.mark.parametrize(
    ("verified", "fields"),
    [
        ("false", {}),
        ('"false"', {}),
        ("", {}),
        ("true", {"email": "else@example.com"}),
        ("true", {"is_staff": False}),
    ],
    ids=["not verified", "not verified, as a text", "no claim", "unknown", "a program's user"],
)
def test_unknown_or_unverified_person_cannot_sign_on(org, settings, verified, fields):
    member(org, **fields)
    with provider(settings, verified=verified):
        client = browser()
        answer = sign_on(client)
        assert answer["Location"] == "/admin/login/"
        assert b"Ask an owner" in client.get("/admin/login/").content
        assert not is_in(client)
    assert (User.objects.count(), SocialAccount.objects.count()) == (1, 0)


@pytest.mark.parametrize("email", ["\u017fam@example.com", "sam\u212a@example.com"])
def test_lookalike_of_the_provider_is_another_address(org, settings, email):
    user = member(org, email=email.replace("\u017f", "s").replace("\u212a", "k"))
    with provider(settings, email=email):
        client = browser()
        assert sign_on(client)["Location"] == "/admin/login/"
        assert not is_in(client)
    user.refresh_from_db()
    assert (user.proven_email, user.check_password(PASSWORD)) == ("", True)


@pytest.mark.parametrize("process", ["connect", "redirect"])
def test_sign_on_only_logs_in(org, settings, process):
    member(org)
    with provider(settings):
        client = browser()
        log_in(client)
        assert sign_on(client, f"{START}?process={process}")["Location"] == "/admin/login/"
    assert not SocialAccount.objects.exists()


def test_providers_say_in_words_that_an_address_is_verified(org, settings):
    member(org)
    with provider(settings, verified='"true"'):
        client = browser()
        sign_on(client)
        assert is_in(client)


def test_address_of_two_accounts_matches_neither(org, settings):
    for name in ("sam", "sam2"):
        member(org, name=name, email="Sam@example.com")
    with provider(settings):
        client = browser()
        sign_on(client)
        assert not is_in(client)


def test_sign_on_page_is_404_without_a_provider(org):
    assert browser().post(START).status_code == 404
    assert b"Continue with single" not in browser().get("/admin/login/").content
