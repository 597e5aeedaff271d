"""The limits of a template; `meter` enforces them.

A template is untrusted code, and Python cannot interrupt a thread from outside: signals reach the
main thread only, and an exception set from another thread waits until a running C call returns. So
the time is limited from within, by two rules that hold in any thread:

1. No single step is long. Every value that a template can hold is bounded (`values.py`), and so are
   the input and the result of every filter (`liquid/filters.py`), so that no call takes more than
   some milliseconds. What cannot be bounded is refused or implemented here.
2. Every step is charged. Each node, look-up, filter and write uses fuel by the size of its values;
   when the fuel is used up, the thread's CPU clock is read. No step avoids this, so a rendering
   exceeds its time by one portion of fuel at most.

Time is this thread's CPU time, not wall time: a busy machine must not fail a message. `QUICK` has
fuel instead of time, so it is the same on any machine.
"""

from dataclasses import dataclass

SOURCE_LIMIT = 500_000
"""Characters of one field's source."""
DATA_LIMIT = 1_000_000
"""Weight of the data of a template, and of a joined list (`values.weigh`)."""
LIST_LIMIT = 10_000
"""Length of a range, and of a list that a filter takes or returns."""
TEXT_LIMIT = 100_000
"""Characters of a text that a filter takes or returns."""
WEIGHT_LIMIT = 500_000
"""Weight of a list that a filter returns."""
NUMBER_LIMIT = 10**30
"""Absolute value of a number, so that arithmetic stays cheap."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one rendering (all fields of one message together) may use."""

    seconds: float = 0.25
    """CPU time of the rendering thread."""
    fuel: int | None = None
    """What all steps may use, if no clock is to be read."""
    data: int = DATA_LIMIT
    """Weight of all data (`values.weigh`)."""
    output: int = 1 << 20
    """Characters written, including captured ones."""
    iterations: int = 10_000
    """Iterations of all loops together."""
    memory: int = 2_000_000
    """Weight of assigned and captured values."""


QUICK = Limits(fuel=20_000, data=100_000, output=1 << 17)
"""What a rendering may use that takes less than 100 ms of CPU time, whatever the template is."""
