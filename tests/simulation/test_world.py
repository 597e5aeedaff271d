"""Histories from seeds keep all promises and replay, and defects are found (docs/simulation.md)."""

import pytest

from tests.simulation.world.mutants import MUTANTS
from tests.simulation.world.parallel import Task, mutant_names, play

pytestmark = [
    pytest.mark.django_db,  # only so that there is a migrated database to copy
    pytest.mark.xdist_group("simulation"),
]

SEEDS = 20
"""CI plays 1,000 beside the tests, by `make simulate`."""
REPLAYED = [19, 11, 17]  # in another order: what was played before must not matter
MUTANT_SEEDS = 1000
QUICK = ("no lease", "receipts backwards", "attempts stay", "no idempotency key",
         "attempts after the send")  # fmt: skip
"""Defects that a few histories find."""


@pytest.fixture(scope="module")
def second(django_db_setup):
    """Return what a second process plays: some histories again, and then defects."""
    return list(play([Task(REPLAYED), *_until_found(QUICK)], processes=1))


def test_histories_keep_the_promises_and_replay(second):
    found = {each.seed: each for each in play([Task(range(SEEDS))], processes=1)}
    assert {seed: each.violations for seed, each in found.items() if each.violations} == {}
    assert len(found) == SEEDS
    again = {each.seed: each.digest for each in second if each.mutant is None}
    assert again == {seed: found[seed].digest for seed in REPLAYED}


def test_quick_defects_are_found(second):
    assert _found(second) == set(QUICK)


@pytest.mark.parametrize("name", MUTANTS)
def test_defect_changes_something_that_exists(name):
    with MUTANTS[name]():
        pass


@pytest.mark.long
def test_every_defect_is_found():
    names = set(mutant_names())
    assert _found(play(_until_found(names), processes=1)) == names


def _until_found(names):
    return [Task(range(MUTANT_SEEDS), each, stops=True) for each in names]


def _found(played):
    return {each.mutant for each in played if each.violations}
