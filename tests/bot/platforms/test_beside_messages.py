"""The real web server while a platform hangs: bots get answers in time, and messages go on."""

import os
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pytest
import requests
from django.conf import settings
from django.db import connection

from rme.run import programs
from tests import factories
from tests.crm.bots import connect
from tests.crm.breaking import BREAKS
from tests.rest import Api, message
from tests.service import ROOT, free_port
from tests.stopwatch import Stopwatch

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("opened"),
    pytest.mark.system,
]

THREADS = 4
BOTS = 12
"""Three times what there are threads."""
BOT_SECONDS = 5.0


@pytest.fixture
def web(redis: Any) -> Iterator[str]:
    """Run one process of the web server on the tests' database; gives its address."""
    port, database = free_port(), connection.settings_dict
    where = f"{quote(database['HOST'], safe='')}:{database['PORT']}/{database['NAME']}"
    env = {
        **os.environ,
        "DATABASE_URL": f"postgres://{database['USER']}@{where}",
        "REDIS_URL": settings.REDIS_URL,
        "BASE_URL": f"http://127.0.0.1:{port}",
        "OUTBOUND_OPEN_HOSTS": "127.0.0.1",
    }
    env |= {"PORT": str(port), "WEB_WORKERS": "1", "WEB_THREADS": str(THREADS)}
    env |= {"BOT_SECONDS": str(BOT_SECONDS)}
    process = subprocess.Popen(programs.web(env), cwd=ROOT, env=env)
    try:
        until = time.monotonic() + 120
        while not answers(port):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def answers(port: int) -> bool:
    try:
        return requests.get(f"http://127.0.0.1:{port}/livez", timeout=1).status_code == 200
    except requests.RequestException:
        return False


@pytest.mark.promise("bot-calls-6")
def test_messages_are_accepted_while_a_platform_hangs(keeper, on_odoo, web):
    bot = connect(keeper, on_odoo)
    sender = factories.organization("sender")
    factories.template(sender)
    api, ada = Api(sender), factories.contact(sender)
    on_odoo.server.answer = BREAKS["hangs"][0]

    def ask(_: int) -> tuple[int, str, float]:
        query = {"action": "Confirm_Contact", "org": keeper.pk, "email": "ada@example.org"}
        with Stopwatch() as watch:
            answer = requests.get(f"{web}/bot/api.php", query, headers=bot.headers(), timeout=20)
        return answer.status_code, answer.json()["error"], watch.seconds

    def send() -> tuple[int, float]:
        token = {"Authorization": f"Bearer {api.token}"}
        with Stopwatch() as watch:
            answer = requests.post(
                f"{web}/rme/v1/messages", json=message(ada), headers=token, timeout=20
            )
        return answer.status_code, watch.seconds

    with ThreadPoolExecutor(BOTS) as pool:
        asked = [pool.submit(ask, each) for each in range(BOTS)]
        time.sleep(0.5)
        first = send()
        results = [each.result() for each in asked]
    assert {(code, error) for code, error, _ in results} == {(504, "crm_timeout")}
    assert max(took for *_, took in results) < 2 * BOT_SECONDS
    assert first[0] == 202
    assert first[1] < 2 * BOT_SECONDS  # it waited for a thread, once
    with ThreadPoolExecutor(BOTS) as pool:
        asked = [pool.submit(ask, each) for each in range(BOTS)]
        time.sleep(0.1)
        later = [send() for _ in range(5)]
        results = [each.result() for each in asked]
    assert {(code, error) for code, error, _ in results} == {(504, "crm_timeout")}
    assert {code for code, _ in later} == {202}
    assert max(took for _, took in later) < 0.8 * BOT_SECONDS
