"""Pre-send checks: suppressions, consent, frequency caps and pauses.

Checked when a message is accepted (`check`) and again right before it is sent (`begin_check`, under
`gate_lock`). `current_consent` and `active_suppressions` can also be read alone.
"""

from messaging.consent.gates.checks import (
    Candidate,
    GateResult,
    PendingCheck,
    Refusal,
    begin_check,
    check,
)

__all__ = ["Candidate", "GateResult", "PendingCheck", "Refusal", "begin_check", "check"]
