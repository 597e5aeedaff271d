"""Pages of the template versions of an organization."""

import base64
import binascii
from typing import NamedTuple

import orjson
from django.db.models import Q

from messaging.content.inputs import TemplatesQuery
from messaging.models import TemplateVersion
from rme.core import errors

_ORDER = ("template__name", "template__language", "template__channel", "version")
_COLUMNS = {
    "name": "template__name",
    "channel": "template__channel",
    "language": "template__language",
    "status": "state",
}


class VersionKey(NamedTuple):
    """Where a version stands in the order of pages."""

    name: str
    language: str
    channel: str
    version: int


def page(organization_id: str, query: TemplatesQuery) -> tuple[list[TemplateVersion], str | None]:
    """Return a page of versions with their templates, and the cursor of the next page; one query.

    They are ordered by name, language, channel and version.
    """
    rows = TemplateVersion.objects.filter(template__organization_id=organization_id)
    for name, column in _COLUMNS.items():
        value = getattr(query, name)
        if value is not None:
            rows = rows.filter(**{column: value})
    if query.cursor:
        rows = rows.filter(_after(read_cursor(query.cursor)))
    rows = rows.select_related("template").order_by(*_ORDER)
    rows_read = list(
        rows.only(
            *_ORDER, "template__category", "state", "variables", "created_at", "activated_at"
        )[: query.limit + 1]
    )
    versions = rows_read[: query.limit]
    return versions, cursor_of(versions[-1]) if len(rows_read) > query.limit else None


def _after(key: VersionKey) -> Q:
    """Return the condition for the versions after a key."""
    equal_prefix, condition = Q(), Q()
    for column, value in zip(_ORDER, key, strict=True):
        condition |= equal_prefix & Q(**{f"{column}__gt": value})
        equal_prefix &= Q(**{column: value})
    return condition


def cursor_of(version: TemplateVersion) -> str:
    """Encode the place after a version, which may be deleted meanwhile."""
    template = version.template
    key = [template.name, template.language, template.channel, version.version]
    return base64.urlsafe_b64encode(orjson.dumps(key)).decode().rstrip("=")


def read_cursor(text: str) -> VersionKey:
    """Parse a cursor. Raises InvalidPayload."""
    try:
        key = orjson.loads(base64.urlsafe_b64decode(text + "=="))
    except (ValueError, binascii.Error):
        key = None
    match key:
        case [str() as name, str() as language, str() as channel, int() as version]:
            if "\0" not in name + language + channel and 0 < version < 1 << 31:
                return VersionKey(name, language, channel, version)
    raise errors.InvalidPayload.at("cursor", "not a cursor of ours")
