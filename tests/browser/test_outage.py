"""An outage on Home: a provider that refuses and workers that stopped, each with its button."""

import re
import time

import psutil
import pytest
import requests
from playwright.sync_api import expect

from tests.browser import tabs
from tests.fakes import tcp
from tests.service import data_folder, note, running

pytestmark = pytest.mark.xdist_group("browser")
SECONDS = 20
"""How soon Home shows what has happened, without a click."""
MESSAGES = 30


def refuse(connection, number):
    """Answer 4xx for ever, as a mail server does that is full."""
    stream = connection.makefile("rb")
    connection.sendall(b"220 mail.test\r\n")
    while line := stream.readline():
        answer = b"451 4.3.0 later\r\n" if line[:4].upper() == b"RCPT" else b"250 ok\r\n"
        connection.sendall(answer)


def seconds_until(tab, text, button):
    """Return how long it takes until Home shows a sentence with its button."""
    started = time.monotonic()
    row = tab.locator(".c-needs li", has_text=text)
    expect(row.get_by_role("link").get_by_text(button, exact=True)).to_be_visible()
    return time.monotonic() - started


def stop_workers(service):
    """Freeze the workers, as a machine does that hangs; killed ones are started again."""
    workers = service.children("rme.workers")
    for each in workers:
        each.suspend()
    return workers


def test_home_shows_a_refusing_provider_and_stopped_workers(chromium):
    with (
        tcp.TcpServer(refuse) as server,
        data_folder() as var,
        running(
            var,
            SMTP_URL=f"smtp+plain://127.0.0.1:{server.port}",
            OUTBOUND_OPEN_HOSTS="127.0.0.1",
        ) as service,
        tabs.opened(chromium, viewport=tabs.DESKTOP, locale="en-GB") as tab,
    ):
        demo = service.demo()
        tab.goto(f"{demo['admin_url']}login/")
        tab.get_by_label("Username").fill(demo["admin_user"])
        tab.locator("input[name=password]").fill(demo["admin_password"])
        tab.get_by_role("button", name="Log in", exact=True).click()
        tab.goto(f"{demo['admin_url']}?organization=demo")
        expect(tab.locator("#home")).to_be_visible()
        headers = {"Authorization": f"Bearer {service.token(demo)}"}
        for number in range(MESSAGES):
            url = f"{demo['base_url']}/messages"
            answer = requests.post(url, json=note(demo, number), headers=headers, timeout=20)
            assert answer.status_code == 202
        refused = seconds_until(tab, "attempts in the last hour", "See account")
        workers = stop_workers(service)
        try:
            stopped = seconds_until(tab, "No worker is running", "See waiting messages")
        finally:
            for each in workers:
                if psutil.pid_exists(each.pid):
                    each.resume()
        expect(tab.locator(".c-state")).to_contain_text("stop or delay messages.")
        print(f"refused after {refused:.1f} s, stopped after {stopped:.1f} s")
        assert max(refused, stopped) <= SECONDS
        tab.context.clear_cookies()  # as if the session had ended
        tab.wait_for_url(re.compile(r"/login/\?next=/admin/%3Forganization%3Ddemo"))
