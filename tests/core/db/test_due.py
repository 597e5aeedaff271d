"""Turns: who has waited longest is next, and what is not running is never."""

import pytest

from messaging.models import BulkAction
from rme.core.db.due import next_turn

pytestmark = pytest.mark.django_db


def action(org, **fields):
    return BulkAction.objects.create(
        organization=org, kind="CANCEL", scope="all", reason="off", targets=[], total=0,
        started_by="root", user_id=1, **fields,
    )  # fmt: skip


def test_running_actions_take_turns(org):
    first, second = action(org), action(org)
    action(org, state="STOPPED")
    turns = [next_turn(BulkAction) for _ in range(4)]
    assert turns == [first.pk, second.pk, first.pk, second.pk]


def test_no_turn_without_running_actions(org):
    action(org, state="DONE")
    assert next_turn(BulkAction) is None
