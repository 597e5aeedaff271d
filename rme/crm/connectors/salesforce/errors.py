"""Platform errors from Salesforce's responses.

An error response is [{"errorCode", "message", "fields"}], with the codes of the enumerations
StatusCode and ExceptionCode:
https://developer.salesforce.com/docs/atlas.en-us.api.meta/api/sforce_api_calls_concepts_core_data_objects.htm
"""

import re
from collections.abc import Mapping, Sequence

from rme.crm.connectors.base import (
    Duplicate,
    MappingWrong,
    PlatformAway,
    PlatformError,
    PlatformLimit,
    PlatformRefused,
    PlatformSlow,
    UnknownParent,
)
from rme.crm.mapping import ObjectMapping

LIMITS = frozenset({"REQUEST_LIMIT_EXCEEDED", "TXN_SECURITY_METERING_ERROR"})
REFUSALS = frozenset(
    {
        "API_CURRENTLY_DISABLED",
        "API_DISABLED_FOR_ORG",
        "INSUFFICIENT_ACCESS",
        "INSUFFICIENT_ACCESS_OR_READONLY",
        "INVALID_LOGIN",
        "PASSWORD_LOCKOUT",
        "TRIAL_EXPIRED",
    }
)
SLOW = frozenset({"QUERY_TIMEOUT"})
AWAY = frozenset({"SERVER_UNAVAILABLE", "UNABLE_TO_LOCK_ROW"})
PARENTS = frozenset(
    {
        "ENTITY_IS_DELETED",
        "INSUFFICIENT_ACCESS_ON_CROSS_REFERENCE_ENTITY",
        "INVALID_CROSS_REFERENCE_KEY",
        "MALFORMED_ID",
    }
)
"""Errors of a create: a reference is wrong. All other codes mean that the mapping is wrong: an
unknown field or object, or a value that is not allowed.
"""

_RECORD = re.compile(r"record with id: ([A-Za-z0-9]{15,18})")


Details = Mapping[str, object]
"""One error of a response, as JSON has it."""


def codes_of(content: object) -> list[str]:
    """Return the error codes of a response's JSON."""
    return [str(each.get("errorCode", "")) for each in _errors(content)]


def _errors(content: object) -> list[Details]:
    items = content if isinstance(content, list) else [content]
    return [each for each in items if isinstance(each, dict)]


def error_of(status: int, content: object, creates: ObjectMapping | None) -> PlatformError:
    """Return the platform error for an error response.

    `creates` is the mapping of the record to create, or None for a read.
    """
    errors = _errors(content)
    codes = set(codes_of(errors))
    if codes & LIMITS or status == 429:
        return PlatformLimit()
    if codes & REFUSALS:
        return PlatformRefused()
    if codes & {"DUPLICATES_DETECTED", "DUPLICATE_VALUE"}:
        return Duplicate(next(filter(None, map(_duplicate, errors)), ""))
    if codes & SLOW:
        return PlatformSlow()
    if codes & AWAY:
        return PlatformAway()
    if creates and codes & PARENTS:
        return UnknownParent(_parent(errors, creates))
    if codes - {""} and status < 500:
        return MappingWrong()
    return PlatformSlow() if creates and status >= 500 else PlatformAway()


def _duplicate(error: Details) -> str:
    """Return the id of the record that exists already, or "" if the error does not name it."""
    if record := _RECORD.search(str(error.get("message", ""))):
        return record[1]
    result = error.get("duplicateResult") or error.get("duplicateResut")  # Salesforce's misspelling
    results = result.get("matchResults") if isinstance(result, dict) else None
    for rule in results if isinstance(results, list) else []:
        match rule:
            case {"matchRecords": [{"record": {"Id": identifier}}, *_]}:
                return str(identifier)
    return ""


def _parent(errors: Sequence[Details], creates: ObjectMapping) -> str:
    """Return our field whose reference is wrong, by the platform's fields that the errors name."""
    field_lists = (each.get("fields") for each in errors)
    names = {str(field) for fields in field_lists if isinstance(fields, list) for field in fields}
    for name in ("contact_id", "account_id"):
        if names & set(creates.fields.get(name, ())):
            return name
    return "account_id"
