"""Salesforce's errors as ours.

They are [{"errorCode", "message", "fields"}], with the codes of the enumerations StatusCode and
ExceptionCode:
https://developer.salesforce.com/docs/atlas.en-us.api.meta/api/sforce_api_calls_concepts_core_data_objects.htm
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

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
"""What else it answers is about the mapping: a field, an object, a value that is not allowed."""

_RECORD = re.compile(r"record with id: ([A-Za-z0-9]{15,18})")


def codes_of(content: Any) -> list[str]:
    listed = content if isinstance(content, list) else [content]
    return [str(each.get("errorCode", "")) for each in listed if isinstance(each, dict)]


def error_of(status: int, content: Any, creates: ObjectMapping | None) -> PlatformError:
    """Say which of our errors an answer of Salesforce's is."""
    listed = content if isinstance(content, list) else [content]
    said = [each for each in listed if isinstance(each, dict)]
    codes = set(codes_of(said))
    if codes & LIMITS or status == 429:
        return PlatformLimit()
    if codes & REFUSALS:
        return PlatformRefused()
    if codes & {"DUPLICATES_DETECTED", "DUPLICATE_VALUE"}:
        return Duplicate(next(filter(None, map(_duplicate, said)), ""))
    if codes & SLOW:
        return PlatformSlow()
    if codes & AWAY:
        return PlatformAway()
    if creates and codes & PARENTS:
        return UnknownParent(_parent(said, creates))
    if codes - {""} and status < 500:
        return MappingWrong()
    return PlatformSlow() if creates and status >= 500 else PlatformAway()


def _duplicate(said: Mapping[str, Any]) -> str:
    """Give the id of the record that is there already (the misspelling is Salesforce's)."""
    if found := _RECORD.search(str(said.get("message", ""))):
        return found[1]
    result: Any = said.get("duplicateResult") or said.get("duplicateResut")
    try:
        for match in result["matchResults"]:
            for record in match["matchRecords"]:
                return str(record["record"]["Id"])
    except (LookupError, TypeError):
        pass  # it does not say which
    return ""


def _parent(said: Sequence[Mapping[str, Any]], creates: ObjectMapping) -> str:
    named = {str(field) for each in said for field in each.get("fields") or ()}
    for name in ("contact_id", "account_id"):
        if named & set(creates.fields.get(name, ())):
            return name
    return "account_id"
