"""The token endpoint behind the real web server: chunked forms, many processes, odd requests."""

import os
import socket
import subprocess
import time
from urllib.parse import quote, urlencode

import pytest
import requests
from django.conf import settings
from django.db import connection

from rme.run import programs
from rme.tenants.models import RequestLogEntry
from tests.service import ROOT, free_port
from tests.tenants.conftest import GRANT
from tests.threads import at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.system]


def environment(port):
    database = connection.settings_dict
    host, name = quote(database["HOST"], safe=""), database["NAME"]
    return {
        **os.environ,
        "DATABASE_URL": f"postgres://{database['USER']}@{host}:{database['PORT']}/{name}",
        "REDIS_URL": settings.REDIS_URL,
        "BASE_URL": f"http://127.0.0.1:{port}",
    }


@pytest.fixture
def web(program, redis):
    """Run granian as `make run` does, with two processes, on the database of the tests."""
    port = free_port()
    env = {**environment(port), "PORT": str(port)}
    process = subprocess.Popen(programs.web(env), cwd=ROOT, env=env)
    try:
        until = time.monotonic() + 60
        while not answers(port):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.1)
        program.audience = f"http://127.0.0.1:{port}"
        yield program
    finally:
        process.terminate()
        process.wait(60)


def answers(port):
    try:
        return requests.get(f"http://127.0.0.1:{port}/livez", timeout=1).status_code == 200
    except requests.RequestException:
        return False


def raw(base, text):
    """Send bytes as they are; give the status and the whole answer."""
    host, _, port = base.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=5) as wire:
        wire.sendall(text)
        answer = b""
        while part := wire.recv(65_536):
            answer += part
    return int(answer.split(b" ", 2)[1]), answer


@pytest.mark.promise("tokens-10", "tokens-14")
def test_the_real_web_server(web):
    """One start of the server serves all that needs it: a start takes two seconds."""
    chunked_forms_are_read(web)
    a_body_without_end_is_refused(web)
    two_authorization_headers_are_refused(web)
    a_hundred_replays_give_one_token(web)
    the_request_log_has_each_call_with_a_token(web)


def chunked_forms_are_read(web):
    form = urlencode({"grant_type": GRANT, "assertion": web.assertion()}).encode()
    pieces = (form[i : i + 40] for i in range(0, len(form), 40))
    answer = requests.post(
        f"{web.audience}/services/oauth2/token",
        data=pieces,
        headers={"Content-Type": "application/x-www-form-urlencoded"},
        timeout=5,
    )
    assert "Content-Length" not in answer.request.headers
    assert answer.status_code == 200
    bearer = {"Authorization": f"Bearer {answer.json()['access_token']}"}
    listed = requests.get(f"{web.audience}/rme/v1/messages", headers=bearer, timeout=5)
    assert (listed.status_code, listed.json()) == (200, {"messages": [], "nextCursor": None})
    refused = requests.post(f"{web.audience}/rme/v1/messages", json={}, headers=bearer, timeout=5)
    assert refused.status_code == 400


def a_body_without_end_is_refused(web):
    answer = requests.post(
        f"{web.audience}/services/oauth2/token",
        data=(b"a" * 65_536 for _ in range(3)),
        headers={"Content-Type": "application/x-www-form-urlencoded"},
        timeout=5,
    )
    assert (answer.status_code, answer.json()) == (
        400,
        {"error": "invalid_request", "error_description": "the body is too large"},
    )


def two_authorization_headers_are_refused(web):
    form = {"grant_type": "client_credentials", "client_id": web.client_id}
    token = requests.post(
        f"{web.audience}/services/oauth2/token",
        {**form, "client_secret": web.secret},
        timeout=5,
    ).json()["access_token"]
    twice = b"Authorization: Bearer x\r\nAuthorization: Bearer " + token.encode() + b"\r\n"
    start = b"GET /rme/v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    status, answer = raw(web.audience, start + twice + b"\r\n")
    assert status == 401, answer


def a_hundred_replays_give_one_token(web):
    form = {"grant_type": GRANT, "assertion": web.assertion(jti="once")}
    url = f"{web.audience}/services/oauth2/token"
    answers = at_once(lambda: requests.post(url, form, timeout=30), 100)
    assert sorted(answer.status_code for answer in answers) == [200] + [400] * 99
    refusals = {answer.text for answer in answers if answer.status_code == 400}
    assert refusals == {
        '{"error": "invalid_grant", "error_description": "the assertion was used before"}'
    }


def the_request_log_has_each_call_with_a_token(web):
    """The processes store it by threads of their own, once a second."""
    expected = [
        ("GET", "/rme/v1/messages", 200, ""),
        ("POST", "/rme/v1/messages", 400, "INVALID_PAYLOAD"),
    ]
    until = time.monotonic() + 60
    found = []
    while found != expected and time.monotonic() < until:
        time.sleep(0.1)
        rows = RequestLogEntry.objects.filter(application_id=web.application.pk).order_by("method")
        found = list(rows.values_list("method", "route", "status", "code"))
    assert found == expected
