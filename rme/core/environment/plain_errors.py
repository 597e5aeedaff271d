"""Errors of a process that can't start: one line instead of a traceback."""

import sys
from traceback import walk_tb
from types import TracebackType

from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError

from rme.core.environment import diagnosis


def install() -> None:
    """Show wrong settings, and a database that can't be reached, in one line."""
    sys.excepthook = _show


def _show(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if line := _line(error):
        sys.stderr.write(f"rme: {line}\n")
    else:
        sys.__excepthook__(kind, error, traceback)


def _line(error: BaseException) -> str | None:
    """Return the sentence; None for an error of another kind, whose traceback says more."""
    if isinstance(error, ImproperlyConfigured):
        return str(error) if _is_ours(error) else None
    if isinstance(error, OperationalError):
        return diagnosis.problem_of_settings()
    return None


def _is_ours(error: ImproperlyConfigured) -> bool:
    """Return whether rme raised an error. Django's own ones are faults of code."""
    *_, (frame, _) = walk_tb(error.__traceback__)
    return str(frame.f_globals["__name__"]).partition(".")[0] == "rme"
