"""Input of the webhook endpoint resource."""

from datetime import datetime, timedelta
from typing import Annotated, NamedTuple

from django.utils.translation import gettext as _
from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints, TypeAdapter
from pydantic_core import PydanticCustomError

from messaging.models.endpoints import TYPES
from messaging.webhooks import endpoints
from rme.core import ids
from rme.core.db import clock
from rme.core.errors import InvalidPayload
from rme.core.http.fields import Cursor, Instant, Limit, Printable, Query, Schema, given

REPLAY_PERIOD = timedelta(days=3)
"""The longest period that is replayed at once."""


def _known_type(value: object) -> object:
    if isinstance(value, str) and value not in TYPES:
        raise PydanticCustomError("event_type", _("no such event type"))
    return value


EndpointUrl = Annotated[
    str,
    StringConstraints(min_length=1, max_length=500),
    Field(
        description="https, without credentials, of a host with a public address.",
        examples=["https://hooks.example.com/rme"],
    ),
]
Description = Annotated[str, StringConstraints(max_length=200), Printable]
EventTypeName = Annotated[
    str,
    BeforeValidator(_known_type),
    Field(json_schema_extra={"enum": list(TYPES)}),
]
EventTypes = Annotated[
    list[EventTypeName],
    Field(min_length=1, max_length=len(TYPES), examples=[["message.*", "consent.changed"]]),
]


class EndpointInput(Schema):
    """A new endpoint."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "url": "https://hooks.example.com/rme",
                    "description": "Production",
                    "types": ["message.*", "consent.changed", "suppression.created"],
                }
            ]
        }
    )

    url: EndpointUrl
    description: Description = ""
    types: EventTypes


class EndpointUpdateInput(Schema):
    """What changes about an endpoint. A field that is left out stays as it is."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"enabled": False}]})

    url: EndpointUrl = Field(default_factory=str)  # no default that its own length forbids
    description: Description = ""
    types: EventTypes = Field(default_factory=list)
    enabled: bool = Field(
        True, description="true enables an endpoint again and resets its failures."
    )


class ReplayInput(Schema):
    """A replay: without a period, of the deliveries that were given up in 30 days."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"since": "2026-05-01T08:00:00Z", "until": "2026-05-01T12:00:00Z"}],
            "anyOf": [given("since"), {"properties": {"until": {"type": "null"}}}],
        }
    )

    since: Instant | None = Field(None, description="The beginning of a period of up to 3 days.")
    until: Instant | None = Field(None, description="The end of the period; null: now.")


class EndpointsQuery(Query):
    """The query of GET /webhook-endpoints."""

    limit: Limit = 50
    cursor: Cursor | None = None


ENDPOINT = TypeAdapter(EndpointInput)
ENDPOINT_UPDATE = TypeAdapter(EndpointUpdateInput)
REPLAY = TypeAdapter(ReplayInput)


class ReplayRange(NamedTuple):
    """A period of events."""

    since: datetime
    until: datetime


def check_url(url: str) -> None:
    """Raise InvalidPayload for a URL that would never be called."""
    if error := endpoints.url_error(url):
        raise InvalidPayload.at("url", error)


def read_period(period: ReplayInput) -> ReplayRange | None:
    """Return the period to replay; None: the failed deliveries. Raises InvalidPayload."""
    if period.since is None:
        if period.until is not None:
            raise InvalidPayload.at("since", _("is required with until"))
        return None
    now = clock.now()
    until = period.until or now
    if not timedelta() < until - period.since <= REPLAY_PERIOD:
        raise InvalidPayload.at("until", _("must be after since, by at most 3 days"))
    if until > now + ids.SKEW:
        raise InvalidPayload.at("until", _("lies in the future"))
    return ReplayRange(period.since, until)
