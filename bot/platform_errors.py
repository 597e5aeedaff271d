"""What bots are told when a platform fails: never its own words."""

from bot.envelope import Failure
from rme.core.db.statement_timeout import StatementLate
from rme.crm.connectors.base import MappingWrong, PlatformLimit, PlatformRefused, PlatformSlow

OUTCOME_UNKNOWN = {"outcome": "unknown"}
"""Beside a create without an answer: it may have been carried out, and is safe to repeat."""


def failure_of(error: Exception, *, creates: bool) -> Failure:
    """Say what an error is for a bot."""
    match error:
        case Failure():
            return error
        case PlatformLimit(retry_after=seconds):
            told = {"Retry-After": str(seconds)}
            return Failure(503, "crm_limit", "The platform's quota is used up", headers=told)
        case PlatformSlow() | StatementLate():
            more = OUTCOME_UNKNOWN if creates else {}
            return Failure(504, "crm_timeout", "The platform did not answer in time", more=more)
        case PlatformRefused():
            return Failure(502, "crm_auth", "The platform does not take our credentials")
        case MappingWrong():
            return Failure(502, "crm_mapping", "The field mapping does not fit the platform")
    return Failure(502, "crm_unavailable", "The platform cannot be reached")
