"""What push services report of tokens, stored as the send loop stores it."""

from collections.abc import Sequence

from push import feedback
from push.feedback import DeviceOutcome
from rme.core.db import sql


def store(outcomes: Sequence[DeviceOutcome]) -> None:
    """Store which tokens are dead; nothing if all are alive."""
    sql.execute({"feedback": feedback.insert_statement(outcomes)})
