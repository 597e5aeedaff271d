"""Bots while a remote platform is broken: the answer, how soon, and the effect of a repetition."""

import time
from typing import Any

import pytest

from rme.crm.connectors.base import PlatformSlow
from tests.bot.conftest import failure
from tests.bot.refusals_scene import status_and_body
from tests.crm.bots import connect
from tests.crm.breaking import BREAKS
from tests.fakes import tcp
from tests.fakes.http1 import Seen
from tests.stopwatch import Stopwatch

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("opened")]

NAMES = [name for name in BREAKS if name != "drips"]
"""A drip is a hang for whoever waits (`test_odoo_failures`, `test_salesforce_failures`)."""
LATE = ("Gateway Timeout", "crm_timeout", "The platform did not answer in time")
AWAY = ("Bad Gateway", "crm_unavailable", "The platform cannot be reached")
LOOK_UPS = {
    "Confirm_Contact": {"email": "ada@example.org"},
    "Confirm_Contact_Phone": {"phone": "+12127365000"},
    "Confirm_Case": {"email": "ada@example.org"},
    "Confirm_Registration": {"email": "ada@example.org"},
    "Confirm_Account": {"accountName": "Acme"},
}
CREATES = {
    "Create_Account": {"accountName": "Acme"},
    "Create_Contact": {"lastName": "L", "email": "ada@example.org"},
    "Create_Case": {"Subject": "S", "Issue": "I"},
}


def expected(error: Any, **more: str) -> Any:
    if issubclass(error, PlatformSlow):
        return 504, failure(504, *LATE, **more)
    return 502, failure(502, *AWAY)


def creates(seen: Seen) -> bool:
    """Return whether a request makes a record, on either platform."""
    return seen.path.endswith("/create") or (
        seen.method == "POST" and "/sobjects/" in seen.path and "token" not in seen.path
    )


def break_creates(server: Any, answer: Any) -> None:
    """Answer look-ups, and creates by something else."""
    whole = server.answer
    server.answer = lambda c, seen: answer(c, seen) if creates(seen) else whole(c, seen)


@pytest.mark.promise("bot-calls-5")
@pytest.mark.parametrize("name", NAMES)
def test_a_failed_look_up_is_reported_in_time(bot, rows, name):
    bot.confirm("Confirm_Contact", email="ada@example.org")  # with a session
    answer, reading, _ = BREAKS[name]
    rows.server.answer = answer
    with Stopwatch() as watch:
        response = bot.get("Confirm_Contact", email="ada@example.org")
    assert status_and_body(response) == expected(reading)
    assert watch.seconds < 7  # a server that hangs does so for ten


@pytest.mark.promise("bot-calls-5")
@pytest.mark.parametrize("name", NAMES)
def test_a_failed_create_is_reported_in_time_and_may_be_repeated(bot, rows, name):
    answer, reading, making = BREAKS[name]
    whole = rows.server.answer
    break_creates(rows.server, answer)
    with Stopwatch() as watch:
        response = bot.post("Create_Case", Subject="S", Issue="I")
    if name == "redirect" and rows.connector.label == "Salesforce":
        making = reading  # simple-salesforce follows none: nothing was made
    assert status_and_body(response) == expected(making, outcome="unknown")
    assert watch.seconds < 7  # a server that hangs does so for ten
    rows.server.answer = whole
    assert bot.create("Create_Case", Subject="S", Issue="I")[1]


@pytest.mark.promise("odoo-6")
@pytest.mark.parametrize("action", LOOK_UPS)
def test_every_failed_look_up_is_reported(bot, rows, action):
    rows.server.answer = BREAKS["resets"][0]
    assert status_and_body(bot.get(action, **LOOK_UPS[action])) == expected(BREAKS["resets"][1])


@pytest.mark.promise("once-3")
@pytest.mark.parametrize("action", CREATES)
def test_create_with_lost_answer_makes_one_record(bot, rows, action):
    whole = rows.server.answer

    def lose(connection: Any, seen: Seen) -> bool:
        class Nowhere:
            def sendall(self, data: bytes) -> None:
                pass

        whole(Nowhere(), seen)
        tcp.reset(connection)
        return False

    break_creates(rows.server, lose)
    response = bot.post(action, **CREATES[action])
    assert status_and_body(response) == expected(PlatformSlow, outcome="unknown")
    rows.server.answer = whole
    again, made = bot.create(action, **CREATES[action])
    assert not made
    ids = [str(row.get("Id", row.get("id"))) for kind in rows.server.rows.values() for row in kind]
    assert ids.count(again) == 1
    assert bot.create(action, **CREATES[action]) == (again, False)


@pytest.mark.promise("bot-calls-6")
def test_hanging_platform_is_not_called_until_it_recovers(keeper, on_odoo, settings):
    settings.BOT_SECONDS = 1.0
    bot, rows = connect(keeper, on_odoo), on_odoo
    bot.confirm("Confirm_Contact", email="ada@example.org")
    whole, rows.server.answer = rows.server.answer, BREAKS["hangs"][0]
    for _ in range(3):
        assert status_and_body(bot.get("Confirm_Contact", email="ada@example.org")) == expected(
            PlatformSlow
        )
    with Stopwatch() as watch:
        for _ in range(5):
            found = status_and_body(bot.get("Confirm_Contact", email="ada@example.org"))
            assert found == expected(PlatformSlow)
    assert watch.seconds < 3  # five calls would wait for a second each
    rows.server.answer = whole
    until = time.monotonic() + 60
    while bot.get("Confirm_Contact", email="ada@example.org").status_code != 200:
        assert time.monotonic() < until
        time.sleep(0.2)
    assert bot.confirm("Confirm_Contact", email="ada@example.org") == []
