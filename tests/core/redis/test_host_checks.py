"""Checks of hosts in Redis: one of an organization at a time, a limit for all, and results."""

import pytest

from rme.core.redis import host_checks
from rme.core.redis.connection import redis_client
from rme.core.redis.host_checks import LIFE_SECONDS, LIMIT, LOST, HostCheck, Start

RUNNING = HostCheck(is_running=True, is_lost=False, result={})


def test_organization_runs_one_check_at_a_time_and_all_together_a_few():
    assert host_checks.begin("acme", "account 1") is Start.BEGUN
    assert host_checks.begin("acme", "account 2") is Start.OWN
    others = [host_checks.begin(f"other{n}", "account 1") for n in range(LIMIT)]
    assert others == [Start.BEGUN] * (LIMIT - 1) + [Start.ALL]
    host_checks.end("acme", "account 1", {"text": "works"})
    assert host_checks.begin("acme", "account 2") is Start.BEGUN


def test_result_is_visible_to_its_organization_only():
    host_checks.begin("acme", "account 1")
    assert host_checks.read("acme", ["account 1", "account 2"]) == {"account 1": RUNNING}
    host_checks.end("acme", "account 1", {"text": "works"})
    assert host_checks.read("acme", ["account 1"]) == {
        "account 1": HostCheck(is_running=False, is_lost=False, result={"text": "works"})
    }
    assert host_checks.read("other", ["account 1"]) == {}
    host_checks.begin("acme", "save")
    host_checks.end("acme", "save", None)
    assert host_checks.read("acme", ["save"]) == {}


def test_check_of_a_killed_process_is_lost_and_frees_its_place(monkeypatch):
    monkeypatch.setattr(host_checks, "LIFE_SECONDS", 0)
    host_checks.begin("acme", "account 1")
    found = host_checks.read("acme", ["account 1"])["account 1"]
    assert (found, found.problem) == (HostCheck(is_running=False, is_lost=True, result={}), LOST)
    assert host_checks.begin("acme", "account 1") is Start.BEGUN
    assert LIFE_SECONDS > 60


@pytest.fixture
def no_redis(settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    redis_client.cache_clear()
    yield
    redis_client.cache_clear()


@pytest.mark.usefixtures("no_redis")
def test_without_redis_checks_run_and_have_no_progress():
    assert host_checks.begin("acme", "account 1") is Start.BEGUN
    assert host_checks.begin("acme", "account 1") is Start.BEGUN
    host_checks.end("acme", "account 1", {})
    assert host_checks.read("acme", ["account 1"]) == {}


def test_record_expires():
    host_checks.begin("acme", "account 1")
    host_checks.end("acme", "account 1", {})
    assert 0 < redis_client().ttl("rme:host_check:acme:account 1") <= host_checks.KEPT_SECONDS
