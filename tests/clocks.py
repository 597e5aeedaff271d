"""Clocks that stand until a test moves them: of the caches, and of Redis's scripts."""

import time
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pytest

from messaging.delivery.accounts import circuits
from rme.core.redis import rate_limits
from rme.core.redis.rate_limits import Script

_TIME = "redis.call('TIME')"
_LIVES = {"'PX', life": "'PX', life + 300000", "math.ceil(life)": "math.ceil(life) + 300"}


class StandingClock:
    """The monotonic clock of some modules, in place of the `time` that they import."""

    def __init__(self, patch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
        self._now = time.monotonic()
        for module in modules:
            patch.setattr(module, "time", self)

    def monotonic(self) -> float:
        """Return the same time as before, unless it was moved."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds

    def __getattr__(self, name: str) -> Any:
        """Return anything else from `time`, such as a thread's CPU time."""
        return getattr(time, name)


class RedisClock:
    """The clock of the scripts of the rate limits and the circuits.

    Redis lets keys expire by its own clock. A bucket's key lives for some minutes longer than it
    would, so that a test that is interrupted finds it.
    """

    def __init__(self, patch: pytest.MonkeyPatch, now: int = 1_200_000) -> None:
        self._patch, self._microseconds = patch, now * 1_000_000
        self._scripts = [(script, _living_longer(script.text)) for script in _scripts()]
        self.advance(0)

    @property
    def now(self) -> float:
        """Return the time as Redis has it, in seconds since 1970."""
        return self._microseconds / 1_000_000

    def advance(self, seconds: float) -> None:
        """Let time pass, counted in microseconds as Redis does."""
        self._microseconds += round(seconds * 1_000_000)
        whole, rest = divmod(self._microseconds, 1_000_000)
        for script, text in self._scripts:
            moved = Script(text.replace(_TIME, f"{{'{whole}', '{rest}'}}"))
            self._patch.setattr(script, "text", moved.text)
            self._patch.setattr(script, "sha", moved.sha)


def _living_longer(text: str) -> str:
    found = [life for life in _LIVES if life in text]
    for life in found:
        text = text.replace(life, _LIVES[life])
    assert found
    return text


def _scripts() -> Sequence[Script]:
    """Return the scripts that read the time, each of which must be known here."""
    known = [
        value
        for module in (rate_limits, circuits)
        for value in vars(module).values()
        if isinstance(value, Script) and _TIME in value.text
    ]
    assert len(known) == 4
    return known
