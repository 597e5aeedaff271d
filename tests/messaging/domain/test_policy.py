"""What organizations decide about sending."""

from datetime import timedelta

import pytest

from messaging.domain.policy import (
    BUILT_IN,
    MARKETING,
    TRANSACTIONAL,
    CategoryRules,
    SendingRulesRecord,
    quiet_hours,
    rules_of,
)

NIGHT = {"from": "21:00", "until": "08:00"}


def sending(*, quiet_transactional: bool) -> SendingRulesRecord:
    return SendingRulesRecord(
        quiet_hours={"SMS": NIGHT},
        quiet_transactional=quiet_transactional,
        schedule_grace=timedelta(hours=1),
        sends_per_second=None,
        sends_per_day=0,
        double_opt_in=False,
        track_opens=False,
        track_clicks=False,
    )


@pytest.mark.parametrize(
    ("category", "channel", "quiet_transactional", "hours"),
    [
        (MARKETING, "SMS", False, NIGHT),
        (MARKETING, "EMAIL", False, None),
        (TRANSACTIONAL, "SMS", False, None),
        (TRANSACTIONAL, "SMS", True, NIGHT),
    ],
)
def test_quiet_hours_of_a_category(category, channel, quiet_transactional, hours):
    rules = BUILT_IN[category]
    assert quiet_hours(sending(quiet_transactional=quiet_transactional), channel, rules) == hours


def test_deleted_category_needs_consent():
    rules = rules_of(BUILT_IN, "NEWS")
    assert (rules.name, rules.opt_in, rules.priority) == ("NEWS", True, 1)
    assert rules.expires_after == BUILT_IN[MARKETING].expires_after


def test_category_of_the_organization_replaces_a_built_in_one():
    ours = CategoryRules(MARKETING, False, True, timedelta(hours=1))
    assert rules_of({**BUILT_IN, MARKETING: ours}, MARKETING) is ours


def test_transactional_goes_first():
    assert [BUILT_IN[name].priority for name in (TRANSACTIONAL, MARKETING)] == [0, 1]
