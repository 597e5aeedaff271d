"""Histories from seeds keep all promises and replay, and defects are found (docs/simulation.md)."""

import pytest

from tests.simulation.world.parallel import Task, mutant_names, play

pytestmark = pytest.mark.django_db  # only so that there is a migrated database to copy

SEEDS = 20
"""CI plays 1,000 beside the tests, by `make simulate`."""
REPLAYED = [19, 11, 17]  # in another order: what was played before must not matter
MUTANT_SEEDS = 1000
QUICK = ("no lease", "receipts backwards", "attempts stay", "no idempotency key",
         "attempts after the send")  # fmt: skip
"""Defects that a few histories find."""


def test_histories_keep_the_promises_and_replay():
    found = {each.seed: each for each in play([Task(range(SEEDS))], processes=1)}
    assert {seed: each.violations for seed, each in found.items() if each.violations} == {}
    assert len(found) == SEEDS
    again = {each.seed: each.digest for each in play([Task(REPLAYED)], processes=1)}
    assert again == {seed: found[seed].digest for seed in REPLAYED}


def test_quickly_found_defects_are_found():
    assert _found(QUICK) == set(QUICK)


@pytest.mark.long
def test_every_defect_is_found():
    assert _found(list(mutant_names())) == set(mutant_names())


def _found(names):
    tasks = [Task(range(MUTANT_SEEDS), each, stops=True) for each in names]
    return {each.mutant for each in play(tasks, processes=1) if each.violations}
