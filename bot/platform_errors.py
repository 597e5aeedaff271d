"""Responses to failures of a platform. They never quote the platform's own texts."""

from bot.envelope import BotFailure
from rme.core.db.statement_timeout import StatementLate
from rme.crm.connectors.base import MappingWrong, PlatformLimit, PlatformRefused, PlatformSlow

OUTCOME_UNKNOWN = {"outcome": "unknown"}
"""Added when a create got no answer: the record may exist, and a repeat is safe."""


def failure_of(error: Exception, *, creates: bool) -> BotFailure:
    """Return the failure that a bot sees for an error."""
    match error:
        case BotFailure():
            return error
        case PlatformLimit(retry_after=seconds):
            headers = {"Retry-After": str(seconds)}
            return BotFailure(503, "crm_limit", "The platform's quota is used up", headers=headers)
        case PlatformSlow() | StatementLate():
            details = OUTCOME_UNKNOWN if creates else {}
            return BotFailure(
                504, "crm_timeout", "The platform did not answer in time", more=details
            )
        case PlatformRefused():
            return BotFailure(502, "crm_auth", "The platform does not take our credentials")
        case MappingWrong():
            return BotFailure(502, "crm_mapping", "The field mapping does not fit the platform")
    return BotFailure(502, "crm_unavailable", "The platform cannot be reached")
