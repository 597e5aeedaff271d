"""Pre-send checks: suppressions, consent, frequency caps and pauses.

Checked when a message is accepted (`check`) and again right before it is sent (`begin_check`, under
`gate_lock`). `current_consent`, `active_suppressions` and the pauses can also be read
alone.
"""

from messaging.consent.gates.checks import (
    Candidate,
    GateResult,
    Pauses,
    PendingCheck,
    Refusal,
    begin_check,
    check,
    pauses_in_force,
)

__all__ = [
    "Candidate",
    "GateResult",
    "Pauses",
    "PendingCheck",
    "Refusal",
    "begin_check",
    "check",
    "pauses_in_force",
]
