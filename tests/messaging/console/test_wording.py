"""What the console says of codes."""

import pytest

from messaging.console import wording


@pytest.mark.parametrize(
    ("status", "channel", "category", "text"),
    [
        ("OPTED_OUT", "ALL", "ALL", "Opted out of all messages"),
        ("OPTED_OUT", "EMAIL", "MARKETING", "Opted out of marketing email"),
        ("OPTED_IN", "SMS", "ALL", "Opted in to all SMS"),
        ("OPTED_IN", "ALL", "TRADE_FAIRS", "Opted in to trade fairs messages"),
    ],
)
def test_decision_in_words(status, channel, category, text):
    assert wording.decision(status, channel, category) == text


@pytest.mark.parametrize(
    ("details", "text"),
    [
        ({"kind": "PHONE", "note": "asked by Sam"}, "phone call, asked by Sam"),
        ({"mergedFrom": "c1", "reason": "twin"}, "merged from contact c1, reason: twin"),
        ({"ip": "192.0.2.7", "agent": "Ada"}, "from 192.0.2.7, agent: Ada"),
    ],
)
def test_evidence_in_words(details, text):
    assert wording.evidence(details) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Retryable", "Refused for now"),
        ("Accepted", "The provider accepted it"),
        ("no answer yet", "No answer yet"),
    ],
)
def test_outcome_in_words(name, text):
    assert wording.outcome(name) == text
