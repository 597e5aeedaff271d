"""What needs an admin now, decided on values."""

from datetime import timedelta

import pytest

from messaging.domain import attention
from messaging.domain.accounts.admission import CircuitState
from messaging.domain.attention import (
    AccountFacts,
    AccountStatus,
    BacklogFacts,
    EndpointFacts,
    Finding,
    PauseFacts,
)
from messaging.domain.channels import Channel

REFUSAL = ("CREDENTIALS_FAILING", "The provider of %(name)s refuses its settings.")
MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("facts", "status", "problem"),
    [
        ({}, "ok", None),
        ({"accepted": 19, "answered": 20}, "ok", None),
        ({"accepted": 18, "answered": 20}, "degraded", ("warning", "PROVIDER_FAILING")),
        ({"accepted": 9, "answered": 890}, "down", ("error", "PROVIDER_FAILING")),
        ({"circuit": CircuitState.OPEN}, "down", ("error", "PROVIDER_STOPPED")),
        ({"circuit": CircuitState.HALF_OPEN}, "degraded", ("warning", "PROVIDER_STOPPED")),
        ({"is_refused": True}, "down", ("error", "CREDENTIALS_FAILING")),
        ({"is_broken": True, "is_active": False}, "down", ("error", "ACCOUNT_BROKEN")),
        ({"is_active": False, "circuit": CircuitState.OPEN}, "paused", None),
        ({"is_active": False, "is_draining": True, "answered": 5}, "draining", None),
    ],
)
def test_status_and_problem_of_an_account(facts, status, problem):
    account = AccountFacts("mail", **facts)
    assert attention.account_status(account) == status
    told = attention.account_problem(account, REFUSAL)
    assert (told[:2] if told else None) == problem
    is_failing = status in (AccountStatus.DOWN, AccountStatus.DEGRADED)
    assert is_failing is (told is not None)


def test_failing_account_is_told_with_its_figures():
    facts = AccountFacts("mail", circuit=CircuitState.OPEN, accepted=9, answered=890)
    assert attention.account_problem(facts, REFUSAL) == (
        "error",
        "PROVIDER_STOPPED",
        "mail stopped after failures and is being retried. "
        "Its provider accepted 9 of 890 attempts in the last hour.",
    )


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        (EndpointFacts("Shop"), None),
        (EndpointFacts("Shop", 9 * MINUTE, 650, 1000), None),
        (
            EndpointFacts("Shop", 15 * MINUTE, 650, 1000),
            "The webhook Shop has been failing for 15 min, and 650 events are waiting.",
        ),
        (
            EndpointFacts("Shop", 26 * 60 * MINUTE, 1000, 1000),
            "The webhook Shop has been failing for 1 d, and 1,000 or more events are waiting.",
        ),
        (EndpointFacts("Shop", 70 * MINUTE), "The webhook Shop has been failing for 1 h."),
        (
            EndpointFacts("Shop", disabled_because="It answered 410."),
            "The webhook Shop is disabled: It answered 410.",
        ),
    ],
)
def test_problem_of_a_webhook(facts, problem):
    told = attention.endpoint_problem(facts)
    assert (told[2] if told else None) == problem


@pytest.mark.parametrize(
    ("priority", "minutes", "severity"),
    [(0, 0.9, None), (0, 1, "error"), (1, 14, None), (1, 15, "warning")],
)
def test_backlog_is_late_by_its_priority(priority, minutes, severity):
    facts = BacklogFacts(Channel.SMS, priority, 12, minutes * MINUTE)
    told = attention.backlog_problem(facts)
    assert (told[0] if told else None) == severity
    assert attention.backlog_problem(BacklogFacts(Channel.SMS, priority, 0, 99 * MINUTE)) is None


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        (PauseFacts("", "", "", "fraud"), "All sending is paused: fraud"),
        (PauseFacts("SMS", "NEWS", "", "typo"), "Sending is paused for SMS, category NEWS: typo"),
        (PauseFacts("", "", "welcome", "typo"), "Sending is paused for template welcome: typo"),
    ],
)
def test_problem_of_a_pause(facts, text):
    assert attention.pause_problem(facts) == ("warning", "PAUSED", text)


def test_findings_are_sorted_by_harm():
    findings = [Finding("a", severity, severity, "") for severity in ("warning", "error")]
    assert [each.code for each in attention.by_harm(findings)] == ["error", "warning"]
