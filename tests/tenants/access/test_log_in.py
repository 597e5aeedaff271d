"""Log-in: by password and code, recovery code, and what is counted."""

import pytest
from allauth.mfa.models import Authenticator
from cryptography.fernet import Fernet
from django.core.cache import cache

from rme.core.db.encrypted_fields import keyring
from rme.core.redis.connection import redis_client
from rme.tenants.access import adapters
from tests.tenants.access.scene import (
    CODE,
    LOGIN,
    SECRET,
    browser,
    code_of,
    is_in,
    log_in,
    member,
    with_totp,
)

pytestmark = pytest.mark.django_db


def test_a_password_is_enough_without_a_second_factor(org):
    member(org)
    client = browser()
    answer = log_in(client)
    assert (answer.status_code, answer["Location"]) == (302, "/admin/")
    assert is_in(client)


def test_log_in_redirects_to_the_requested_page_but_to_no_other_site(org):
    member(org)
    target = "/admin/messaging/message/"
    assert log_in(browser(), to=f"{LOGIN}?next={target}")["Location"] == target
    assert log_in(browser(), to=f"{LOGIN}?next=https://evil.example/")["Location"] == "/admin/"


def test_a_password_alone_does_not_pass_the_second_factor(org):
    with_totp(member(org))
    client = browser()
    assert log_in(client)["Location"] == CODE
    assert not is_in(client)
    assert client.post(CODE, {"code": "000000"}).status_code == 200
    assert not is_in(client)
    answer = client.post(CODE, {"code": code_of()})
    assert (answer.status_code, answer["Location"]) == (302, "/admin/")
    assert is_in(client)


def test_a_code_counts_once(org):
    with_totp(member(org))
    code = code_of()
    first, second = browser(), browser()
    for client in (first, second):
        log_in(client)
        client.post(CODE, {"code": code})
    assert (is_in(first), is_in(second)) == (True, False)


@pytest.mark.parametrize("away", [False, True], ids=["with Redis", "without Redis"])
@pytest.mark.parametrize("spelling", ["{}{}", "{} {}", "{}-{}", " {}  {} ", "{}.{}"])
def test_code_in_any_spelling_counts_once_in_all_processes(
    org, spelling, away, settings, monkeypatch
):
    with_totp(member(org))
    code = code_of()
    if away:
        monkeypatch.setattr(settings, "REDIS_URL", "redis://127.0.0.1:1/0")
        redis_client.cache_clear()
    first, second = browser(), browser()
    for client, text in ((first, code), (second, spelling.format(code[:3], code[3:]))):
        log_in(client)
        cache.clear()  # as another process has it
        client.post(CODE, {"code": text})
    found = (is_in(first), is_in(second))
    monkeypatch.undo()
    redis_client.cache_clear()
    assert found == (True, False)


def test_code_used_to_set_up_an_app_cannot_log_in(org):
    member(org)
    client, other = browser(), browser()
    log_in(client)
    page = client.get("/admin/account/2fa/totp/activate/")
    secret = page.context["form"].secret
    code = code_of(secret)
    assert client.post("/admin/account/2fa/totp/activate/", {"code": code}).status_code == 302
    log_in(other)
    cache.clear()
    other.post(CODE, {"code": code})
    assert not is_in(other)


@pytest.mark.parametrize("spelling", ["{}{}", "{} {}", "{}-{}"])
def test_recovery_code_in_any_spelling_counts_once(org, spelling):
    user = with_totp(member(org))
    row = Authenticator.objects.get(user=user, type=Authenticator.Type.RECOVERY_CODES)
    code = row.wrap().get_unused_codes()[0]
    first, second = browser(), browser()
    for client, text in ((first, code), (second, spelling.format(code[:4], code[4:]))):
        log_in(client)
        cache.clear()
        client.post(CODE, {"code": text})
    assert (is_in(first), is_in(second)) == (True, False)


def test_a_recovery_code_counts_once(org):
    user = with_totp(member(org))
    row = Authenticator.objects.get(user=user, type=Authenticator.Type.RECOVERY_CODES)
    code = row.wrap().get_unused_codes()[0]
    first, second = browser(), browser()
    for client in (first, second):
        log_in(client)
        client.post(CODE, {"code": code})
    assert (is_in(first), is_in(second)) == (True, False)


def test_wrong_codes_from_any_address_wait_after_five(org, redis_clock):
    with_totp(member(org))
    found = []
    for n in range(7):
        client = browser(f"192.0.2.{n}")
        log_in(client)
        found.append(client.post(CODE, {"code": "000000"}).status_code)
    assert found == [200] * 5 + [429] * 2
    client = browser()
    log_in(client)
    assert client.post(CODE, {"code": code_of()}).status_code == 429


def test_secrets_of_second_factors_are_encrypted_at_rest(org):
    user = with_totp(member(org))
    stored = Authenticator.objects.get(user=user, type=Authenticator.Type.TOTP).data["secret"]
    assert SECRET not in stored
    assert keyring().decrypt(stored.encode()).decode() == SECRET


def test_secrets_of_second_factors_follow_a_new_key(org, settings):
    with_totp(member(org))
    old, new = settings.FIELD_KEYS[0], Fernet.generate_key().decode()
    settings.FIELD_KEYS = [new, old]
    assert (adapters.reencrypt_factors(change=False).old, adapters.reencrypt_factors().old) == (
        2,
        2,
    )
    settings.FIELD_KEYS = [new]
    assert adapters.reencrypt_factors().current == 2
    client = browser()
    log_in(client)
    client.post(CODE, {"code": code_of()})
    assert is_in(client)


def test_users_of_programs_do_not_log_in(org):
    member(org, is_staff=False)
    client = browser()
    assert log_in(client).status_code == 200
    assert not is_in(client)


def test_a_page_of_the_account_needs_a_log_in():
    for path in ("2fa/", "2fa/totp/activate/", "2fa/webauthn/", "sessions/", "reauthenticate/"):
        answer = browser().get(f"/admin/account/{path}")
        assert (path, answer.status_code) == (path, 302)
        assert answer["Location"].startswith((LOGIN, "/admin/account/login/?next="))


@pytest.mark.parametrize("path", ["", "signup/", "password/change/", "confirm-email/", "3rdparty/"])
def test_unused_account_pages_are_404(org, path):
    member(org)
    client = browser()
    log_in(client)
    assert client.get(f"/admin/account/{path}").status_code == 404


def test_a_second_factor_is_set_up_and_protects_the_next_log_in(org):
    user = member(org)
    client = browser()
    log_in(client)
    page = client.get("/admin/account/2fa/totp/activate/")
    assert page.status_code == 200, page["Location"]
    secret = page.context["form"].secret
    answer = client.post("/admin/account/2fa/totp/activate/", {"code": code_of(secret)})
    assert answer.status_code == 302
    codes = client.get(answer["Location"]).content.decode()
    row = Authenticator.objects.get(user=user, type=Authenticator.Type.RECOVERY_CODES)
    assert row.wrap().get_unused_codes()[0] in codes
    assert log_in(browser())["Location"] == CODE


def test_wrong_passwords_before_a_change_of_factors_count_as_guesses(org, settings, redis_clock):
    settings.ACCOUNT_REAUTHENTICATION_TIMEOUT = 0
    member(org)
    client = browser()
    log_in(client)
    found = [
        client.post("/admin/account/reauthenticate/", {"password": "wrong"}).status_code
        for _ in range(6)
    ]
    assert found == [200] * 5 + [429]


def test_sessions_are_listed_and_ended(org):
    member(org)
    here, there = browser("192.0.2.7"), browser("198.51.100.8")
    for client in (here, there):
        log_in(client)
    shown = here.get("/admin/account/sessions/").content.decode()
    assert "192.0.2.7" in shown
    assert "198.51.100.8" in shown
    assert here.post("/admin/account/sessions/").status_code == 302
    assert (is_in(here), is_in(there)) == (True, False)


@pytest.mark.parametrize("away", [False, True], ids=["with Redis", "without Redis"])
def test_wrong_codes_are_limited_from_all_addresses_together(org, redis_clock, away, request):
    if away:
        request.getfixturevalue("redis_away")
    with_totp(member(org))
    with_totp(member(org, name="eve"))
    client = browser()
    log_in(client)
    assert [client.post(CODE, {"code": "000000"}).status_code for _ in range(3)] == [200] * 3
    other = browser("198.51.100.7")
    log_in(other)
    found = [other.post(CODE, {"code": "000000"}).status_code for _ in range(4)]
    assert found == [200] * 2 + [429] * 2
    refused = client.post(CODE, {"code": code_of()})
    assert (refused.status_code, 1 <= int(refused["Retry-After"]) <= 300) == (429, True)
    assert not is_in(client)
    third = browser("203.0.113.9")
    log_in(third, "eve")
    third.post(CODE, {"code": code_of()})
    assert is_in(third)


def test_correct_code_clears_the_wrong_ones_without_redis(org, redis_away):
    with_totp(member(org))
    client, other = browser(), browser("198.51.100.7")
    for each in (client, other):
        log_in(each)
    assert [client.post(CODE, {"code": "000000"}).status_code for _ in range(4)] == [200] * 4
    assert client.post(CODE, {"code": code_of()}).status_code == 302
    found = [other.post(CODE, {"code": "000000"}).status_code for _ in range(6)]
    assert found == [200] * 5 + [429]
