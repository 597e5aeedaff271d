"""Two cells and a router, as `make run-cells` starts them: API calls, a browser, a killed cell."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.conftest import ARGUMENTS, CHROMIUM
from tests.service import ROOT, free_port, own_engines

pytestmark = pytest.mark.long
START_SECONDS = 240


class TwoCells:
    """The router's address, and the demo of each cell."""

    def __init__(self, var: Path) -> None:
        self.var, self.port = var, free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        env = {"RME_VAR": str(var), "PORT": str(self.port), "WEB_WORKERS": "1"}
        self.log = (var / "cells.log").open("w")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rme.cells.two_cells"],
            cwd=ROOT,
            env={**own_engines(), **env, "WORKER_CONCURRENCY": "1"},
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )
        until = time.monotonic() + START_SECONDS
        while self.log_text().count("rme is up.") < 2:
            assert self.process.poll() is None and time.monotonic() < until, self.log_text()
            time.sleep(0.2)

    def log_text(self) -> str:
        return (self.var / "cells.log").read_text()

    def demo(self, cell: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.var / "cells" / cell / "demo.json").read_text())
        return found

    def token(self, cell: str) -> str:
        demo = self.demo(cell)
        form = {"grant_type": "client_credentials", "client_id": demo["client_id"]}
        form["client_secret"] = demo["client_secret"]
        answer = requests.post(f"{self.base}/services/oauth2/token", form, timeout=30)
        return str(answer.json()["access_token"])

    def send(self, cell: str, token: str) -> requests.Response:
        body = {
            "channel": "EMAIL",
            "category": "TRANSACTIONAL",
            "to": [{"contactId": self.demo(cell)["contact_ids"][0]}],
            "template": {"name": "note", "language": "en_US"},
            "context": {"variables": {"note": "Hello"}},
        }
        headers = {"Authorization": f"Bearer {token}"}
        return requests.post(f"{self.base}/rme/v1/messages", json=body, headers=headers, timeout=30)

    def kill(self, cell: str) -> None:
        """Kill a cell with all its processes, as the kernel would."""
        for child in psutil.Process(self.process.pid).children():
            if child.environ().get("CELL") == cell:
                for each in [*child.children(recursive=True), child]:
                    each.kill()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(90)
        self.log.close()


@pytest.fixture(scope="module")
def cells() -> Iterator[TwoCells]:
    with tempfile.TemporaryDirectory(prefix="rme-test-", dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        found = TwoCells(Path(name))
        yield found
        found.stop()


@pytest.fixture
def page() -> Iterator[Page]:
    if CHROMIUM is None:
        pytest.skip("no chromium on the PATH")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as playwright:
        browser: Browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser.new_page()
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


def log_in(page: Page, password: str) -> None:
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in", exact=True).click()


def go(page: Page, to: str) -> None:
    page.get_by_label("In another cell").select_option(to)
    page.get_by_role("button", name="Go", exact=True).click()


def test_calls_of_each_cell_pass_by_one_address(cells):
    for cell in ("eu", "us"):
        assert cells.send(cell, cells.token(cell)).status_code == 202
        demo = cells.demo(cell)
        query = {"org": demo["org"], "action": "unknown"}
        for key, status in ((demo["api_key"], 400), (f"{demo['api_key']}x", 401)):
            headers = {"X-API-Key": key}
            answer = requests.get(f"{cells.base}/bot/api.php", query, headers=headers, timeout=30)
            assert answer.status_code == status
    assert cells.send("eu", "a-token-of-no-cell").status_code == 401


def test_a_person_connects_two_accounts_once_and_then_logs_in_once(cells, page):
    base, eu, us = cells.base, cells.demo("eu"), cells.demo("us")
    page.goto(f"{base}/admin/login/?cell=eu")
    log_in(page, eu["admin_password"])
    page.goto(f"{base}/admin/console/{eu['org']}/messages/")
    go(page, "us/")
    expect(page.get_by_text("Log in here once, to connect your account")).to_be_visible()
    log_in(page, us["admin_password"])
    page.get_by_role("button", name="Connect the two accounts").click()
    expect(page).to_have_url(f"{base}/admin/")
    page.context.clear_cookies()

    page.goto(f"{base}/admin/login/?cell=us")
    log_in(page, us["admin_password"])
    page.goto(f"{base}/admin/console/{us['org']}/messages/")
    for cell, demo in (("eu", eu), ("us", us), ("eu", eu)):
        go(page, f"{cell}/{demo['org']}")
        expect(page).to_have_url(f"{base}/admin/console/{demo['org']}/messages/")
    page.goto(f"{base}/admin/")
    with page.expect_navigation():
        page.evaluate("document.querySelector('form[action*=logout]').submit()")
    for cell in ("eu", "us"):
        page.goto(f"{base}/admin/?cell={cell}")
        expect(page.get_by_label("Password")).to_be_visible()


def test_killed_cell_affects_only_its_organizations(cells):
    tokens = {cell: cells.token(cell) for cell in ("eu", "us")}
    for cell, token in tokens.items():
        assert cells.send(cell, token).status_code == 202
    cells.kill("us")
    away = cells.send("us", tokens["us"])
    assert away.status_code in (502, 503)  # the first meets a connection that was open
    for _ in range(20):
        assert cells.send("eu", tokens["eu"]).status_code == 202
        away = cells.send("us", tokens["us"])
        assert (away.status_code, away.headers["Retry-After"]) == (503, "1")
    page = requests.get(f"{cells.base}/admin/", cookies={"rme_cell": "us"}, timeout=30)
    assert (page.status_code, "/admin/login/?cell=eu" in page.text) == (503, True)
    assert requests.get(f"{cells.base}/readyz", timeout=30).status_code == 200
