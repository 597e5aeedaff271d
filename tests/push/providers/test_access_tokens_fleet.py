"""A day of fifty processes with one APNs key, on a real Redis that is away for some of it.

Each process is real, has caches of its own and a clock of its own, which the test sets; a step of
ten minutes is over when all have sent.
"""

import multiprocessing
import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
import time_machine

from push.providers import access_tokens, apns
from rme.core.cache import TtlCache
from rme.core.redis.connection import redis_client
from tests.fakes.apns import settings as apns_settings
from tests.push.providers.attempts import provider

PROCESSES = 50
STEP = 600
STEPS = 24 * 3600 // STEP
START = 1_800_000_123
AWAY = range(8 * 3600 // STEP, 11 * 3600 // STEP)
"""The steps in which Redis is away: three hours."""
SKEW = 5.0
"""Seconds by which clocks differ at most."""

_forking = multiprocessing.get_context("fork")


@dataclass
class Day:
    """What one process has shown to Apple: by token when first, and the oldest it ever was."""

    first: dict[str, float] = field(default_factory=dict)
    made_at: dict[str, float] = field(default_factory=dict)
    oldest: float = 0.0
    signed: int = 0


class Process:
    """A worker that pushes once in each step."""

    def __init__(self, number: int, account: dict[str, object]) -> None:
        self.chance = random.Random(number)
        self.skew = self.chance.uniform(-SKEW / 2, SKEW / 2)
        self.account = provider("apns", account)
        assert isinstance(self.account, apns.Apns)
        self.day = Day()

    def live(self, away: str, here: str) -> Iterator[None]:
        from django.conf import settings

        for step in range(STEPS):
            settings.REDIS_URL = away if step in AWAY else here
            if step in (AWAY.start, AWAY.stop):
                redis_client.cache_clear()
            if step not in AWAY and self.chance.random() < 0.05:
                TtlCache.clear_all()  # it was started anew
            with time_machine.travel(START + STEP * step + self.skew, tick=False):
                self._push(START + STEP * step)
            yield

    def _push(self, moment: float) -> None:
        made: list[access_tokens.AccessToken] = []

        def make() -> access_tokens.AccessToken:
            made.append(self.account.sign())
            return made[-1]

        token = access_tokens.get(self.account.credential_name, apns.TOKEN_LIFE, make)
        day = self.day
        day.signed += len(made)
        day.first.setdefault(token.text, moment)
        day.made_at[token.text] = token.made_at
        day.oldest = max(day.oldest, moment + self.skew - token.made_at)


def _run(number, account, barrier, results, here):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # it logs that Redis is away, at each step
    os.dup2(2, 1)
    TtlCache.clear_all()
    redis_client.cache_clear()
    process = Process(number, account)
    for _ in process.live("redis://127.0.0.1:1/0", here):
        barrier.wait(60)
    results.put(process.day)


@pytest.fixture
def days(redis, settings):
    """Let the day pass; gives what each process saw of it."""
    barrier, results = _forking.Barrier(PROCESSES), _forking.SimpleQueue()
    shared = apns_settings(1, "", 5.0), barrier, results, settings.REDIS_URL
    running = [
        _forking.Process(target=_run, args=(number, *shared), daemon=True)
        for number in range(PROCESSES)
    ]
    for process in running:
        process.start()
    try:
        seen = [results.get() for _ in running]
    finally:
        for process in running:
            process.join(20)
            process.kill()
        redis.flushdb()
    return seen


def test_fifty_processes_show_apple_few_and_only_fresh_tokens_in_a_day(days):
    assert len(days) == PROCESSES
    first, made_at = {}, {}
    shown_by = Counter()
    for day in days:
        made_at |= day.made_at
        shown_by.update(day.first.keys())
        for text, moment in day.first.items():
            first[text] = min(moment, first.get(text, moment))
    apart = [after - before for before, after in pairwise(sorted(first.values()))]
    assert min(apart) >= 20 * 60
    assert len(set(made_at.values())) == len(made_at)  # no two tokens of one time
    assert 24 * 60 // 55 <= len(first) <= 24 * 60 // 20
    assert max(day.oldest for day in days) < 3600
    assert set(shown_by.values()) == {PROCESSES}  # each is everybody's
    alone = sum(day.signed for day in days)
    assert alone > len(first)  # Redis was away, indeed
