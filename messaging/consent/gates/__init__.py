"""Pre-send checks: suppressions, consent, frequency caps and pauses.

Checked when a message is accepted (`check`) and again right before it is sent (`begin_check`, under
`gate_lock`). `messaging.store` reads the facts, and `messaging.domain.gates` decides.
"""

from messaging.consent.gates.checks import (
    REFUSAL_TEXTS,
    PendingCheck,
    begin_check,
    check,
)
from messaging.domain.gates import Candidate, Pauses
from messaging.store.gates.pauses_and_caps import pauses_in_force

__all__ = [
    "REFUSAL_TEXTS",
    "Candidate",
    "Pauses",
    "PendingCheck",
    "begin_check",
    "check",
    "pauses_in_force",
]
