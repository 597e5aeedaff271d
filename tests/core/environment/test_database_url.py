"""`DATABASE_URL` with one host and with several."""

import pytest

from rme.core.environment.database_url import parse


def test_single_host_is_parsed():
    found = parse("postgres://rme:p%40ss@db.internal:5433/rme?sslmode=require")
    assert (found["HOST"], found["PORT"], found["PASSWORD"]) == ("db.internal", 5433, "p@ss")
    assert found["OPTIONS"] == {"sslmode": "require"}


def test_several_hosts_are_tried_for_a_writable_one():
    found = parse("postgres://rme:p%2C%40@a:5433,b,[::1]:6432/rme?sslmode=verify-full")
    assert (found["HOST"], found["PORT"]) == ("a,b,::1", "5433,5432,6432")
    assert (found["USER"], found["PASSWORD"], found["NAME"]) == ("rme", "p,@", "rme")
    assert found["OPTIONS"] == {"target_session_attrs": "read-write", "sslmode": "verify-full"}


def test_target_session_attrs_of_the_url_is_kept():
    found = parse("postgres://rme@a,b/rme?target_session_attrs=any")
    assert found["OPTIONS"] == {"target_session_attrs": "any"}


@pytest.mark.parametrize("hosts", ["a:port,b", "a,", ",b", "a:,b"])
def test_an_invalid_host_is_refused_without_the_password(hosts):
    with pytest.raises(ValueError, match="DATABASE_URL") as caught:
        parse(f"postgres://rme:secret@{hosts}/rme")
    assert "secret" not in str(caught.value)
