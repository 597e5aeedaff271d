"""The accounts of the drill of a move: each loss is counted, and makes the drill fail."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
import requests

from tests.drills import moving_report
from tests.drills.decisions import CATEGORY, CHANNEL, Decision, Decisions, DecisionsAccount
from tests.drills.far_side import EventsAccount, FarSide, ReportsAccount
from tests.drills.moving import Account
from tests.fakes import http1
from tests.fakes.http1 import Http1Server
from tests.service import wait_for

NOTHING_WRONG = Account(
    accepted=9,
    lost=0,
    both=0,
    unsent=0,
    doubled=0,
    rate=1.0,
    rows="moved from eu to us",
    milliseconds={"copying": 1, "leaving": 1, "paused": 1},
    outage=1.0,
    silence=1.0,
    answers={"202": 9, "503": 1},
    odd=set(),
    ledger="demo: 9 entries hold",
    decisions=DecisionsAccount(made=9, lost=0, doubled=0, differ=0),
    reports=ReportsAccount(made=9, lost=0, repeated=1),
    events=EventsAccount(made=9, lost=0, repeated=1),
)


def test_repeated_reports_and_webhooks_are_allowed():
    assert moving_report.failures(NOTHING_WRONG) == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"lost": 2}, "messages lost: 2"),
        ({"both": 2}, "messages accepted by both: 2"),
        ({"unsent": 2}, "messages not sent: 2"),
        ({"doubled": 2}, "messages sent twice: 2"),
        ({"odd": {"400 bad"}}, "answers that no caller should see: 1"),
        ({"decisions": DecisionsAccount(9, 2, 0, 0)}, "decisions lost: 2"),
        ({"decisions": DecisionsAccount(9, 0, 2, 0)}, "decisions recorded twice: 2"),
        ({"decisions": DecisionsAccount(9, 0, 0, 2)}, "people shown with another decision: 2"),
        ({"reports": ReportsAccount(9, 2, 0)}, "reports lost: 2"),
        ({"events": EventsAccount(9, 2, 0)}, "events lost: 2"),
    ],
)
def test_each_loss_fails_the_drill(change, text):
    assert moving_report.failures(replace(NOTHING_WRONG, **change)) == [text]


class _Shown:
    """Callers to whom the service shows decisions."""

    def __init__(self, shown: dict[str, str]) -> None:
        self._shown = shown

    def get(self, path: str, **query: Any) -> Any:
        rows = [
            {"contactId": person, "channel": CHANNEL, "category": CATEGORY, "status": status}
            for person, status in self._shown.items()
        ]
        return SimpleNamespace(json=lambda: {"consent": rows})


@pytest.mark.parametrize(
    ("ledger", "shown", "account"),
    [
        ({"1", "2", "3"}, "OPTED_IN", DecisionsAccount(3, 0, 0, 0)),
        ({"1", "2", "3", "of the call in doubt"}, "OPTED_IN", DecisionsAccount(3, 0, 0, 0)),
        ({"1", "2", "3", "a", "b"}, "OPTED_IN", DecisionsAccount(3, 0, 1, 0)),
        ({"1", "3"}, "OPTED_IN", DecisionsAccount(3, 1, 0, 0)),
        ({"1", "2", "3"}, "OPTED_OUT", DecisionsAccount(3, 0, 0, 1)),
    ],
)
def test_decisions_are_compared_with_the_ledger_and_the_shown_state(ledger, shown, account):
    decisions = Decisions(_Shown({"ada": shown, "bob": "OPTED_IN"}))
    decisions.made = [
        Decision("1", "ada", "OPTED_OUT", 0),
        Decision("2", "bob", "OPTED_IN", 0),
        Decision("3", "ada", "OPTED_IN", 1),
    ]
    assert decisions.account(ledger) == account


def test_the_gateway_reports_until_it_is_answered_200(tmp_path):
    statuses = iter((503, 200))
    server = Http1Server(lambda connection, _: http1.respond(connection, next(statuses)))
    far_side = FarSide(tmp_path)
    try:
        with server:
            sms = {"id": "a-1", "callback": f"{server.url}hooks/1?attempt=a-1"}
            wait_for(lambda: _is_sent(far_side, "sms", sms))
            wait_for(far_side.reports)
            event = {"type": "message.sent", "data": {"messageId": "m-1"}}
            assert _is_sent(far_side, "events", event)
        assert [seen.path for seen in server.seen] == ["/hooks/1?attempt=a-1&status=delivered"] * 2
        assert (far_side.sms(), far_side.reports()) == ({"a-1": 1}, {"a-1": 2})
        assert far_side.events() == {("message.sent", "m-1"): 1}
    finally:
        far_side.stop()


def _is_sent(far_side: FarSide, path: str, content: object) -> bool:
    """Post to the far side; return whether it was up."""
    try:
        return requests.post(far_side.url(path), orjson.dumps(content), timeout=5).ok
    except requests.ConnectionError:
        return False
