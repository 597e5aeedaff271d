"""Passwords are tried a few times and then not hashed: by account, by address, by both."""

import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher, make_password
from django.db import connection
from django.test import Client

from rme.core.db import clock
from rme.core.redis.rate_limits import Limit
from rme.tenants.access.limits import guess_limits
from rme.tenants.models import GuessCount, User

pytestmark = pytest.mark.django_db

RIGHT, WRONG = "correct horse battery", "wrong"
LOGIN, CHANGE = "/admin/login/", "/admin/password_change/"
HOME, AWAY = "192.0.2.1", "198.51.100.7"
MESSAGE = "Too many attempts to log in. Wait {} seconds, and try again."
hashed = []


class CountingHasher(PBKDF2PasswordHasher):
    """A cheap hasher that counts how often a password is hashed."""

    algorithm = "counting"
    iterations = 1

    def encode(self, password, salt, iterations=None):
        hashed.append(password)
        return super().encode(password, salt, 1)


@pytest.fixture(autouse=True)
def ada(settings, redis, redis_clock):
    settings.PASSWORD_HASHERS = [f"{__name__}.CountingHasher"]
    user = User.objects.create_superuser("ada", password=RIGHT)
    hashed.clear()
    return user


def log_in(password=WRONG, name="ada", address=HOME):
    """Try to log in; return the status and how often a password was hashed for it."""
    before = len(hashed)
    form = {"username": name, "password": password}
    answer = Client(REMOTE_ADDR=address).post(LOGIN, form)
    return answer.status_code, len(hashed) - before


def test_wrong_passwords_of_one_address_wait_after_five_and_are_not_hashed():
    assert [log_in() for _ in range(7)] == [(200, 1)] * 5 + [(429, 0)] * 2
    assert log_in(RIGHT) == (429, 0)  # the right one waits too: else guessing went on


def test_page_says_how_long_to_wait():
    for _ in range(5):
        log_in()
    answer = Client(REMOTE_ADDR=HOME).post(LOGIN, {"username": "ada", "password": WRONG})
    wait = int(answer["Retry-After"])
    assert 50 <= wait <= 60
    text = answer.content.decode()
    assert f"<h1>{MESSAGE.format(wait)}</h1>" in text
    assert answer["X-Request-Id"] in text
    assert "ada" not in text.replace(answer["X-Request-Id"], "")


def answers(name):
    """Return all that a stranger sees of seven tries at an account, and what they cost."""
    seen = []
    for _ in range(7):
        before = len(hashed)
        form = {"username": name, "password": WRONG}
        answer = Client(REMOTE_ADDR=f"2001:db8:0:{len(name)}::1").post(LOGIN, form)
        errors = answer.context["form"].non_field_errors() if answer.status_code == 200 else []
        shown = [str(each) for each in errors]
        headers = (answer.status_code, answer.has_header("Retry-After"))
        seen.append((headers, shown, len(hashed) - before))
    return seen


def test_unknown_accounts_answer_and_cost_the_same():
    User.objects.create_user("inactive", password=RIGHT, is_active=False)
    known = answers("ada")
    assert known == answers("nobody") == answers("inactive") == answers("x" * 150)


def forget(redis, *spans):
    """Let so many seconds pass for the counts that are kept for no longer."""
    for span in spans:
        for key in redis.keys(f"rme:bucket:login:*:{span}"):
            redis.delete(key)


def test_the_wait_grows_from_a_minute_to_half_an_hour(redis):
    waits = []
    for tries, passed in ((5, ()), (15, (300,)), (30, (300, 10_800))):
        for _ in range(tries):
            forget(redis, *passed)
            assert log_in() == (200, 1)
        forget(redis, *passed)
        answer = Client(REMOTE_ADDR=HOME).post(LOGIN, {"username": "ada", "password": WRONG})
        waits.append((answer.status_code, int(answer["Retry-After"])))
    assert [status for status, _ in waits] == [429] * 3
    assert [round(wait, -2) for _, wait in waits] == [100, 500, 1700]  # 60, 540 and 1,728 s


def test_address_trying_many_accounts_is_rate_limited():
    tries = [log_in(name=f"user{n}") for n in range(7)]
    assert tries == [(200, 1)] * 5 + [(429, 0)] * 2
    assert log_in(name="user0", address=AWAY) == (200, 1)


def test_addresses_of_one_ipv6_network_count_together():
    tries = [log_in(address=f"2001:db8::{n}") for n in range(1, 7)]
    assert tries == [(200, 1)] * 5 + [(429, 0)]
    assert log_in(address="2001:db8:0:1::1") == (200, 1)


def test_an_account_tried_from_everywhere_waits_but_not_for_its_owner():
    assert log_in(RIGHT) == (302, 1)
    tries = [log_in(address=f"198.51.100.{n}") for n in range(60)]
    assert tries == [(200, 1)] * 50 + [(429, 0)] * 10
    assert log_in(RIGHT) == (302, 1)  # from where the owner logged in before
    # what strangers failed at another account's name does not matter to it either
    for n in range(7):
        log_in(name=f"user{n}")
    assert log_in(RIGHT) == (302, 1)


def test_success_clears_failures_of_the_account_but_not_of_others():
    for _ in range(4):
        assert log_in() == (200, 1)
    assert log_in(RIGHT) == (302, 1)
    assert [log_in() for _ in range(6)] == [(200, 1)] * 5 + [(429, 0)]
    assert log_in(name="bob") == (200, 1)  # four failures and one give-back before
    assert log_in(name="bob") == (429, 0)


def test_many_people_of_one_office_log_in():
    for n in range(12):
        User.objects.create_superuser(f"user{n}", password=RIGHT)
    hashed.clear()
    assert [log_in(RIGHT, f"user{n}") for n in range(12)] == [(302, 1)] * 12


def test_guesses_at_the_old_password_count_as_guesses_at_a_log_in(ada):
    browser = Client(REMOTE_ADDR=HOME)
    browser.force_login(ada)
    new = {"new_password1": "another horse 1", "new_password2": "another horse 1"}
    for expected in (200, 200, 200, 200, 200, 429):
        before = len(hashed)
        answer = browser.post(CHANGE, {"old_password": WRONG, **new})
        assert (answer.status_code, WRONG in hashed[before:]) == (expected, expected == 200)
    assert browser.get(CHANGE).status_code == 200
    assert log_in(RIGHT) == (429, 0)


def test_correct_old_password_changes_it_and_clears_the_failures(ada):
    browser = Client(REMOTE_ADDR=HOME)
    browser.force_login(ada)
    for _ in range(4):
        log_in()
    form = {"old_password": RIGHT, "new_password1": "another horse 1"}
    assert browser.post(CHANGE, {**form, "new_password2": "another horse 1"}).status_code == 302
    assert [log_in()[0] for _ in range(6)] == [200] * 5 + [429]
    assert browser.get("/admin/").status_code == 200


def test_guesses_are_limited_without_redis(redis_away, caplog):
    assert log_in(RIGHT) == (302, 1)
    assert set(GuessCount.objects.values_list("count", flat=True)) == {0}  # of the address alone
    assert [log_in() for _ in range(7)] == [(200, 1)] * 5 + [(429, 0)] * 2
    assert log_in(RIGHT) == (429, 0)
    assert "limits.open" in caplog.text


def test_without_redis_the_wait_ends_and_old_counts_are_deleted(redis_away):
    for _ in range(5):
        log_in()
    form = {"username": "ada", "password": WRONG}
    answer = Client(REMOTE_ADDR=HOME).post(LOGIN, form)
    assert (answer.status_code, 290 <= int(answer["Retry-After"]) <= 300) == (429, True)
    GuessCount.objects.filter(key__endswith=":300").update(until=clock.now())
    assert log_in() == (200, 1)
    over = GuessCount.objects.update(until=clock.now())
    assert (over > 0, guess_limits.purge(), GuessCount.objects.count()) == (True, over, 0)


def test_address_trying_many_accounts_is_rate_limited_without_redis(redis_away):
    tries = [log_in(name=f"user{n}") for n in range(7)]
    assert tries == [(200, 1)] * 5 + [(429, 0)] * 2
    assert log_in(name="user0", address=AWAY) == (200, 1)


@pytest.mark.django_db(transaction=True)
def test_without_redis_guesses_at_once_are_counted_one_by_one(redis_away):
    limits = (Limit(5, 300), Limit(20, 10_800))

    def guess(_):
        try:
            return guess_limits.take("login:pair:x", *limits).allowed
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        allowed = list(pool.map(guess, range(24)))
    assert sorted(allowed) == [False] * 19 + [True] * 5
    counts = dict(GuessCount.objects.values_list("key", "count"))
    assert counts == {"login:pair:x:300": 5, "login:pair:x:10800": 5}


def test_log_contains_no_personal_data(caplog):
    for _ in range(6):
        log_in(name="ada.lovelace@example.com")
    assert "login.limited" in caplog.text
    for secret in ("lovelace", WRONG, HOME):
        assert secret not in caplog.text


def cpu(password, name):
    """Return the CPU seconds of a try to log in."""
    started = time.thread_time()
    log_in(password, name)
    return time.thread_time() - started


def test_a_hundred_failures_cost_less_cpu_than_ten_successes(settings):
    log_in(RIGHT)  # what the first log-in loads and compiles
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
    password = make_password(RIGHT)  # once, since it takes as long as a log-in
    for n in range(10):
        User.objects.create(
            username=f"user{n}", password=password, is_staff=True, is_superuser=True
        )
    # Medians: a busy machine changes them least. Five of the failures are hashed, as successes are.
    success = median(cpu(RIGHT, f"user{n}") for n in range(10))
    refusal = median(cpu(WRONG, f"guess{n % 20}") for n in range(100))
    assert 5 * success + 95 * refusal < 10 * success, (success, refusal)
