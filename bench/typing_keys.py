"""Typing into a large template: from a key's press to the next picture, in Chromium's trace."""

import math
import os
import shutil
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import orjson
from playwright.sync_api import Browser, Page, sync_playwright

from bench.scene import Scene, free_port, processes, wait_for_port, web

SIZES = (1_000, 200_000)
"""Characters of the HTML: a small template is the reference."""
PLACES = (("start", 0.0), ("middle", 0.5), ("end", 1.0))
KEYS = int(os.environ.get("BENCH_KEYS", "60"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
LONGEST = 50.0
"""The most milliseconds that a key may take."""
PAUSES = (90, 450)
"""Milliseconds between keys: at a stretch, and so slowly that each is followed by a rendering."""
TEXT = "the quick brown fox {{ note }} "
ROW = (
    '<tr class="row"><td style="padding:4px 8px;border-bottom:1px solid #dddddd">Line {n}</td>'
    '<td>{{{{ note }}}}</td><td><a href="https://shop.example/items/{n}">Open</a></td></tr>\n'
)
# Lines above the one that is shown have a height that is only guessed: a second time it is known.
_GO = """([name, share]) => {
  const place = document.querySelector(`[aria-label="${name}"].cm-content`);
  const view = place.cmTile ? place.cmTile.view : place.cmView.view;
  const wanted = Math.floor(view.state.doc.length * share);
  const at = view.state.doc.lineAt(wanted).to;
  view.dispatch({ selection: { anchor: at }, scrollIntoView: true });
  view.focus();
}"""


class Key(NamedTuple):
    """A key: the milliseconds from its press until the picture with it is handed to the screen."""

    wall: float
    cpu: float
    """What the page's main thread worked in this time, also on what it had begun before."""


def typing(scene: Scene) -> None:
    """Each size by turns: a key's time at the start, in the middle and at the end."""
    paths = {size: _template(size) for size in SIZES}
    port = free_port()
    found: dict[tuple[int, str, int], list[Key]] = {}
    try:
        with processes([web("rme.asgi:application", port)], PORT=str(port)):
            wait_for_port(port)
            with _chromium() as browser, _session() as cookie:
                for _ in range(ROUNDS):
                    for size, path in paths.items():
                        page = _open(browser, cookie, port, path)
                        for name, share in PLACES:
                            for pause in PAUSES:
                                keys = _type(browser, page, share, pause)
                                found.setdefault((size, name, pause), []).extend(keys)
                        page.context.close()
    finally:
        _delete()
    for (size, name, pause), keys in found.items():
        what = f"typing, {size // 1000} KB, {name}, a key in {pause} ms"
        cpu, wall = [each.cpu for each in keys], [each.wall for each in keys]
        verdict = "ok" if _high(cpu) <= LONGEST else "TOO MUCH"
        note = f"p95 {_high(cpu):.1f}, longest {max(cpu):.1f} ms of CPU; by the clock "
        note += f"{statistics.median(wall):.0f} and {_high(wall):.0f} ms  {verdict}"
        print(f"{what:<42} {statistics.median(cpu):>8.1f} ms   {note}", flush=True)


def _high(values: list[float]) -> float:
    """Return the 95th percentile."""
    return sorted(values)[math.ceil(len(values) * 0.95) - 1]


def _template(size: int) -> str:
    """Make a template with a draft of so many characters; return the address of its page."""
    from django.urls import reverse

    from messaging.content import templates
    from messaging.models import Template

    made = Template.objects.create(
        organization_id="bench",
        name=f"typing-{size}",
        language="en_US",
        channel="EMAIL",
        category="TRANSACTIONAL",
    )
    rows = []
    while sum(map(len, rows)) < size:
        rows.append(ROW.format(n=len(rows)))
    html = f"<html><body>\n<table>\n{''.join(rows)}</table>\n</body></html>\n"
    templates.add_draft(made, {"subject": "S", "html": html})
    return reverse("console:template", args=["bench", made.name])


def _delete() -> None:
    from messaging.models import Template

    Template.objects.filter(organization_id="bench", name__startswith="typing-").delete()


@contextmanager
def _session() -> Iterator[str]:
    """Return the session of an owner, who is there while the block runs."""
    from django.test import Client

    from rme.tenants.models import Membership, User

    user = User.objects.create_user("bench-owner", password=None, is_staff=True)
    Membership.objects.create(organization_id="bench", user=user, role=Membership.Role.OWNER)
    client = Client()
    client.force_login(user)
    try:
        yield client.cookies["sessionid"].value
    finally:
        user.delete()


@contextmanager
def _chromium() -> Iterator[Browser]:
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # playwright runs an event loop in this thread
    with sync_playwright() as playwright:
        arguments = ["--headless", "--no-sandbox", "--disable-gpu"]
        path = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


def _open(browser: Browser, cookie: str, port: int, path: str) -> Page:
    """Open a template's page, and wait for its first rendering."""
    url = f"http://127.0.0.1:{port}"
    context = browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-GB")
    context.add_cookies([{"name": "sessionid", "value": cookie, "url": url}])
    page = context.new_page()
    page.set_default_timeout(60_000)
    with page.expect_response("**/frame/"):
        page.goto(url + path)
    page.wait_for_load_state("networkidle")
    return page


def _type(browser: Browser, page: Page, share: float, pause: int) -> list[Key]:
    """Type at a place; return the keys."""
    for _ in range(2):
        page.evaluate(_GO, ["HTML", share])
        page.wait_for_timeout(1500)
    browser.start_tracing(page=page, categories=["toplevel", "devtools.timeline"])
    count = KEYS if pause == PAUSES[0] else KEYS // 3
    for number in range(count):
        page.keyboard.type(TEXT[number % len(TEXT)])
        page.wait_for_timeout(pause)
    page.wait_for_timeout(1000)
    found = list(_keys(orjson.loads(browser.stop_tracing())["traceEvents"]))
    assert len(found) == count, (len(found), count)
    return found


def _keys(events: list[dict[str, Any]]) -> Iterator[Key]:
    """Yield the keys of a trace, whose times are microseconds."""
    tasks: dict[int, list[dict[str, Any]]] = {}
    for each in events:
        if each["name"].endswith("RunTask") and each["cat"] == "toplevel" and "tdur" in each:
            tasks.setdefault(each["tid"], []).append(each)
    for each in events:
        data = each.get("args", {}).get("data", {})
        if each["name"] != "EventTiming" or data.get("type") != "keydown":
            continue
        wall = data["commitFinishTime"] - data["timeStamp"]
        begin, end = each["ts"], each["ts"] + wall * 1000
        cpu = sum(task["tdur"] * _share(task, begin, end) for task in tasks.get(each["tid"], []))
        yield Key(wall, cpu / 1000)


def _share(task: dict[str, Any], begin: float, end: float) -> float:
    """Return which share of a task's time lies between two times."""
    inside = min(task["ts"] + task["dur"], end) - max(task["ts"], begin)
    return max(0.0, inside / task["dur"]) if task["dur"] else 0.0
