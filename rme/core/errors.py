"""All errors that callers of the REST API see: one class for each code, with its HTTP status.

    ApiError
    ├── InvalidPayload 400          ├── NotCancellable 409
    ├── Unauthorized 401            ├── SuppressionProtected 409
    ├── Forbidden 403               ├── IdempotencyInProgress 409
    ├── NoConsent 403               ├── PayloadTooLarge 413
    ├── Suppressed 403              ├── UnsupportedMediaType 415
    ├── FrequencyCapped 403         ├── Misdirected 421
    ├── NotFound 404                ├── IdempotencyKeyReused 422
    ├── TemplateNotFound 404        ├── Unreachable 422
    ├── MethodNotAllowed 405        ├── RateLimited 429
    ├── DuplicateAddress 409        ├── ProviderError 502
    ├── InternalError 500           └── Unavailable 503

Domain code raises them, and only `rme.core.http.api` turns them into responses. The outcomes of
providers are another family (`rme.core.provider`) and never become one of these by themselves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar


def translatable(text: str) -> str:
    """Mark a text for translation, as gettext_noop does: the router has no Django."""
    return text


@dataclass(frozen=True, slots=True)
class Detail:
    """A field that is wrong, as a path like `to[0].contactId`, and why."""

    field: str
    message: str

    def as_json(self) -> dict[str, str]:
        return {"field": self.field, "message": self.message}


class ApiError(Exception):
    """An error that a caller sees, with a stable code."""

    code: ClassVar[str]
    status: ClassVar[int]
    default: ClassVar[str]

    def __init__(
        self,
        message: str | None = None,
        *,
        details: Sequence[Detail] = (),
        message_id: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.message = message or self.default
        self.details = tuple(details)
        self.message_id = message_id
        self.headers = dict(headers or {})
        super().__init__(self.message)

    def as_json(self, request_id: str) -> dict[str, object]:
        """Return the error object of the contract, without the envelope `{"error": …}`."""
        return {
            "code": self.code,
            "message": self.message,
            "messageId": self.message_id,
            "requestId": request_id,
            "details": [detail.as_json() for detail in self.details],
        }


class InvalidPayload(ApiError):
    code, status, default = "INVALID_PAYLOAD", 400, translatable("The request is not valid.")

    @classmethod
    def at(cls, field: str, message: str) -> "InvalidPayload":
        """Build the error for one field."""
        return cls(f"{field}: {message}", details=[Detail(field, message)])


class Unauthorized(ApiError):
    code, status, default = "UNAUTHORIZED", 401, translatable("A valid access token is required.")


class Forbidden(ApiError):
    code, status, default = "FORBIDDEN", 403, translatable("The application lacks a permission.")


class NoConsent(ApiError):
    code, status, default = "NO_CONSENT", 403, translatable("The recipient has not consented.")


class Suppressed(ApiError):
    code, status, default = (
        "SUPPRESSED",
        403,
        translatable("The recipient is on a suppression list."),
    )


class FrequencyCapped(ApiError):
    code, status, default = (
        "FREQUENCY_CAPPED",
        403,
        translatable("The recipient has had as many messages of this category as its cap allows."),
    )


class DuplicateAddress(ApiError):
    """An earlier recipient has this address: the message goes there only once."""

    code, status, default = (
        "DUPLICATE_ADDRESS",
        409,
        translatable("An earlier recipient of this message has the same address."),
    )


class NotFound(ApiError):
    code, status, default = "NOT_FOUND", 404, translatable("Not found.")

    @classmethod
    def at(cls, field: str, message: str) -> "NotFound":
        """Build the error for a field whose value does not exist."""
        return cls(f"{field}: {message}", details=[Detail(field, message)])


class TemplateNotFound(ApiError):
    code, status, default = (
        "TEMPLATE_NOT_FOUND",
        404,
        translatable("There is no active template with that name and locale."),
    )


class MethodNotAllowed(ApiError):
    code, status, default = (
        "METHOD_NOT_ALLOWED",
        405,
        translatable("This path does not take that method."),
    )


class NotCancellable(ApiError):
    code, status, default = (
        "NOT_CANCELLABLE",
        409,
        translatable("The message is no longer scheduled."),
    )


class SuppressionProtected(ApiError):
    code, status, default = (
        "SUPPRESSION_PROTECTED",
        409,
        translatable("Only the recipient or an admin may lift this suppression."),
    )


class IdempotencyInProgress(ApiError):
    code, status, default = (
        "IDEMPOTENCY_IN_PROGRESS",
        409,
        translatable("The first request with this Idempotency-Key is still running."),
    )


class PayloadTooLarge(ApiError):
    code, status, default = "PAYLOAD_TOO_LARGE", 413, translatable("The body is larger than 5 MiB.")


class UnsupportedMediaType(ApiError):
    code, status, default = (
        "UNSUPPORTED_MEDIA_TYPE",
        415,
        translatable("The body must be application/json."),
    )


class Misdirected(ApiError):
    """RFC 9110 §15.5.20. Its header `RME-Cell` names the cell that serves the organization."""

    code, status, default = (
        "MISDIRECTED",
        421,
        translatable("Another cell serves this organization."),
    )


class IdempotencyKeyReused(ApiError):
    code, status, default = (
        "IDEMPOTENCY_KEY_REUSED",
        422,
        translatable("This Idempotency-Key was used for another request."),
    )


class Unreachable(ApiError):
    code, status, default = (
        "UNREACHABLE",
        422,
        translatable("No channel asked for has an address or device for this recipient."),
    )


class RateLimited(ApiError):
    code, status, default = "RATE_LIMITED", 429, translatable("Too many requests; see Retry-After.")


class InternalError(ApiError):
    code, status, default = "INTERNAL_ERROR", 500, translatable("Something went wrong on our side.")


class ProviderError(ApiError):
    code, status, default = "PROVIDER_ERROR", 502, translatable("No provider took the message.")


class Unavailable(ApiError):
    code, status, default = (
        "UNAVAILABLE",
        503,
        translatable("The service cannot take requests right now."),
    )


def by_code() -> dict[str, type[ApiError]]:
    """Return the error classes by code: `{"NO_CONSENT": NoConsent, …}`."""
    return {cls.code: cls for cls in ApiError.__subclasses__()}
