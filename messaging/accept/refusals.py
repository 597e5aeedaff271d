"""The one place where refusals of the domain become the errors that callers see."""

from messaging.domain.planning import RefusalCode, SendRefusal
from rme.core import errors
from rme.tenants.oauth.permissions import forbidden

_ERRORS = errors.by_code()


def error_of(refusal: SendRefusal, *, message_id: str | None = None) -> errors.ApiError:
    """Return the error of a refusal; `message_id`: of the message that was stored."""
    if refusal.code is RefusalCode.FORBIDDEN:
        return forbidden(refusal.permission)
    seconds = refusal.retry_after
    return _ERRORS[refusal.code](
        refusal.text or None,
        details=[errors.Detail(*problem) for problem in refusal.fields],
        message_id=message_id,
        headers=None if seconds is None else {"Retry-After": str(seconds)},
    )
