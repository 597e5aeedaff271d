"""A host that people typed and that never answers holds no web thread of the whole service."""

import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from html import unescape

import pytest
import requests

from rme.crm import mapping_text
from rme.crm.admin.platform_form import mapping_name
from tests.crm import remote
from tests.fakes.odoo import OdooServer
from tests.service import ROOT, wait_for
from tests.stopwatch import Stopwatch

pytestmark = pytest.mark.xdist_group("service")

CHECKS = 12
SILENCE_SECONDS = 16
PROMPT_SECONDS = 8.0
"""Generous on a busy machine, and half of the silence."""
RUNNING = "Another check of your organization is running."
ACCOUNTS = """
import json
from messaging.models import ProviderAccount
settings = {{"host": "127.0.0.1", "port": {port}, "security": "NONE", "timeout": {seconds}}}
print(*(ProviderAccount.objects.create(organization_id="demo", kind="smtp", name=f"silent-{{n}}",
    channel="EMAIL", state="DRAFT", credentials=json.dumps(settings)).pk for n in range({count})))
"""


class Tarpit:
    """A server that accepts connections and says nothing."""

    def __enter__(self):
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = int(self._socket.getsockname()[1])
        return self

    def __exit__(self, *_):
        self._socket.close()


class Browser:
    """A person in the admin and the console of the demo's organization."""

    def __init__(self, demo):
        self.base = demo["auth_url"]
        self.session = requests.Session()
        login = self.session.get(f"{self.base}/admin/login/", timeout=60)
        form = {"username": demo["admin_user"], "password": demo["admin_password"]}
        form["csrfmiddlewaretoken"] = self.session.cookies["csrftoken"]
        self.session.post(login.url, form, timeout=60)
        assert "sessionid" in self.session.cookies

    def get(self, path):
        return unescape(self.session.get(f"{self.base}{path}", timeout=60).text)

    def post(self, path, **form):
        form |= {"csrfmiddlewaretoken": self.session.cookies["csrftoken"]}
        return self.session.post(f"{self.base}{path}", form, timeout=60, allow_redirects=False)


@pytest.fixture
def demo(callers_service):
    return callers_service.demo()


@pytest.fixture
def browser(demo):
    return Browser(demo)


def silent_accounts(service, port):
    code = ACCOUNTS.format(port=port, seconds=SILENCE_SECONDS, count=CHECKS)
    command = [sys.executable, "manage.py", "shell", "-v", "0", "-c", code]
    made = subprocess.run(
        command, cwd=ROOT, env=service.env, check=True, capture_output=True, text=True
    )
    return [f"/admin/console/demo/providers/{key}/" for key in made.stdout.split()]


def longest_of(call, while_true):
    """Make a call again and again while a condition holds; return the longest time and how many."""
    times = []
    while while_true() or len(times) < 5:
        with Stopwatch() as watch:
            call()
        times.append(watch.seconds)
        time.sleep(0.02)
    return max(times)


def test_checks_of_a_silent_host_hold_no_web_thread(callers_service, demo, browser):
    other = {**demo, **demo["other"]}
    token = callers_service.token(other)

    def send():
        answer = requests.post(
            f"{demo['base_url']}/messages",
            json={
                "channel": "EMAIL",
                "category": "TRANSACTIONAL",
                "to": [{"contactId": other["contact_ids"][0]}],
                "content": {"subject": "Hello", "text": "Hello"},
            },
            headers={"Authorization": f"Bearer {token}"},
            timeout=60,
        )
        assert answer.status_code == 202, answer.text

    def list_suppressions():
        return requests.get(
            f"{demo['base_url']}/suppressions",
            headers={"Authorization": f"Bearer {token}"},
            timeout=60,
        )

    def read():
        answer = list_suppressions()
        assert answer.status_code == 200, answer.text

    def probe():
        assert requests.get(f"{demo['auth_url']}/livez", timeout=60).status_code == 200

    def check(page):
        with Stopwatch() as watch:
            assert browser.post(page, do="check").status_code == 302
        return watch.seconds

    with Tarpit() as tarpit, ThreadPoolExecutor(CHECKS + 3) as pool:
        pages = silent_accounts(callers_service, tarpit.port)
        callers_service.sql("UPDATE tenants_organization SET calls_per_second = 1000 RETURNING id")
        wait_for(lambda: all(list_suppressions().status_code == 200 for _ in range(5)))
        send(), read(), probe()
        posts = [pool.submit(check, page) for page in pages]

        def are_running():
            return not all(each.done() for each in posts)

        others = [pool.submit(longest_of, call, are_running) for call in (send, read, probe)]
        assert max(each.result() for each in posts) < PROMPT_SECONDS
        assert max(each.result() for each in others) < PROMPT_SECONDS
        # One of them runs. The others say why they do not, in one cookie of this browser.
        shown = {page: browser.get(page) for page in pages}
        (running,) = [page for page, text in shown.items() if "Checking the connection …" in text]
        assert any(RUNNING in text for text in shown.values())
        wait_for(lambda: ": failed. " in browser.get(running), 60)


def test_platform_is_saved_once_it_has_described_itself(callers_service, browser):
    with OdooServer() as odoo:
        settings = remote.odoo_settings(odoo)
        texts = {
            mapping_name(kind, part): text
            for kind, given in remote.ODOO_MAPPING.items()
            for part, text in mapping_text.as_text(given).items()
        }
        form = {"organization": "other", "kind": "odoo", **texts}
        form |= {f"setting_odoo_{name}": value for name, value in settings.items()}
        other = callers_service.demo()["other"]["org"]
        form["organization"] = other
        wrong = {**form, "map_Contact_email": "e_mail"}
        refused = browser.post("/admin/crm/platform/add/", **wrong)
        assert (refused.status_code, "res.partner has no e_mail" in refused.text) == (200, True)
        assert browser.post("/admin/crm/platform/add/", **form).status_code == 302
        asked = len(odoo.asked)
        assert asked == 2 * len({each["object"] for each in remote.ODOO_MAPPING.values()})

        page = f"/admin/crm/platform/{other}/test-connection/"
        try:
            assert browser.post(page).status_code == 302
            wait_for(lambda: "has everything that the mapping names" in browser.get(page), 60)
        finally:
            callers_service.sql("DELETE FROM crm_platform RETURNING 1")
