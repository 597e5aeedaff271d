"""Checks of a platform for its admin pages: its description, and error texts.

They wait for the platform: no web thread may call them (`rme.core.http.checks`).
"""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from django.utils.translation import gettext, gettext_noop

from rme.core.outbound import outbound_transport
from rme.crm import mapping, platforms
from rme.crm.connectors import REMOTE
from rme.crm.connectors.base import (
    Deadline,
    MappingWrong,
    PlatformError,
    PlatformLimit,
    PlatformRefused,
    PlatformSlow,
)
from rme.crm.connectors.conditions import Description
from rme.crm.models import Platform
from rme.tenants import audit
from rme.tenants.audit import Action, Actor

CHECK_SECONDS = 20.0
_TEXTS = {
    PlatformLimit: gettext_noop("The platform's quota is used up."),
    PlatformSlow: gettext_noop("The platform didn't answer in time."),
    PlatformRefused: gettext_noop("The platform rejects these credentials."),
    MappingWrong: gettext_noop("The settings or the mapping cannot be read."),
}
_UNREACHED = gettext_noop("The platform cannot be reached.")


class PlatformBusy(PlatformError):
    """The platform was not asked; the first argument says why, as a sentence."""


def describe(record: platforms.PlatformRecord) -> Description:
    """Return the platform's description of the objects in its mapping. Raise PlatformError."""
    connector = REMOTE[record.kind](
        record.organization_id, transport=outbound_transport(), platform=record
    )
    objects = [each.object for each in record.mappings.values()]
    return connector.describe(objects, deadline=Deadline.after(CHECK_SECONDS))


def try_describe(record: platforms.PlatformRecord) -> Description | PlatformError:
    """Return the platform's description of the objects in its mapping, or the error."""
    try:
        return describe(record)
    except PlatformError as error:
        return error


def error_text(error: PlatformError) -> str:
    """Return an error as a text for people, without the platform's own text."""
    if isinstance(error, PlatformBusy):
        return str(error)
    return gettext(_TEXTS.get(type(error), _UNREACHED))


@dataclass(frozen=True, slots=True)
class KindCheck:
    """The result of a connection test for one kind of record."""

    kind: str
    object: str
    fields: int
    """How many fields the object has."""
    problems: list[str]


def compare(organization_id: str, actor: Actor) -> Mapping[str, Any]:
    """Compare an organization's mapping with its platform's description, and audit the result.

    Returns the result as a sentence, and `KindCheck`s as dictionaries.
    """
    row = Platform.objects.select_related("organization").get(pk=organization_id)
    kinds: list[KindCheck] = []
    began = time.monotonic()
    try:
        kinds = _check_kinds(platforms.of_row(row))
        complete = not any(each.problems for each in kinds)
        text = (
            gettext("It answered in %(seconds)s s, and has everything that the mapping names.")
            if complete
            else gettext("It answered in %(seconds)s s, but lacks something.")
        )
        result = text % {"seconds": f"{time.monotonic() - began:.1f}"}
    except PlatformError as error:
        result = error_text(error)
    entry = audit.about(row, Action.TESTED, organization_id, text=f"connection: {result}")
    audit.record(actor, [entry])
    return {"text": result, "kinds": [asdict(each) for each in kinds]}


def _check_kinds(record: platforms.PlatformRecord) -> list[KindCheck]:
    """Return the check of each mapped kind by the platform's description. Raise PlatformError."""
    if record.problem:
        raise MappingWrong
    described = describe(record)
    problems = mapping.problems_with(record.mappings, described)
    return [
        KindCheck(
            kind=kind,
            object=mapped.object,
            fields=len(described.get(mapped.object) or ()),
            problems=[f"{p.place}: {p.message}" for p in problems if p.kind == kind],
        )
        for kind in mapping.KINDS
        if (mapped := record.mappings.get(kind))
    ]
