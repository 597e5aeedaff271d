"""The inputs of the REST calls for devices."""

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    RootModel,
    StringConstraints,
    TypeAdapter,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticCustomError

from push import device_tokens
from push.devices import Registration
from rme.core.errors import InvalidPayload
from rme.core.http.fields import (
    Cursor,
    Limit,
    Printable,
    Query,
    RecordId,
    Schema,
    Upper,
    any_case,
    given,
)
from rme.core.http.parsing import parse
from rme.core.zones import is_zone

SUBSCRIPTION = {
    "type": "object",
    "description": "A PushSubscription, as `toJSON()` gives it.",
    "properties": {
        "endpoint": {"type": "string", "format": "uri", "pattern": "^https://", "maxLength": 2000},
        "expirationTime": {"type": ["number", "null"]},
        "keys": {
            "type": "object",
            "properties": {
                "p256dh": {"type": "string", "description": "A public key on P-256, base64url."},
                "auth": {"type": "string", "description": "16 bytes, base64url."},
            },
            "required": ["p256dh", "auth"],
        },
    },
    "required": ["endpoint", "keys"],
    "additionalProperties": False,
}
TOKENS: dict[str, JsonSchemaValue] = {
    "IOS": {"type": "string", "pattern": "^([0-9A-Fa-f]{64,4096}|[!-~]*simulator-[!-~]*)$"},
    "ANDROID": {"type": "string", "pattern": "^[!-~]{1,4096}$"},
    "WEB": {"anyOf": [SUBSCRIPTION, {"type": "string", "contentMediaType": "application/json"}]},
    "PLATFORM": {"type": "string", "pattern": "^[!-~]{1,64}$"},
}
"""What a token looks like on each platform, as `push.device_tokens` reads it."""


def _on(platform: str, token: JsonSchemaValue) -> JsonSchemaValue:
    return {"properties": {"platform": any_case([platform]), "token": token}}


Token = Annotated[
    Any,
    WithJsonSchema(
        {
            "anyOf": [{"type": "string", "minLength": 1, "maxLength": 4096}, SUBSCRIPTION],
            "description": "What the platform gave the app: hex on IOS, an FCM registration "
            "token or installation id on ANDROID, a PushSubscription (object or JSON text) on "
            "WEB, the user's id on PLATFORM.",
        }
    ),
]


def _zone(name: str) -> str:
    if not is_zone(name):
        raise PydanticCustomError("zone", "must be an IANA time zone")
    return name


PlatformName = Annotated[Literal["IOS", "ANDROID", "WEB", "PLATFORM"], Upper]


class DeviceInput(Schema):
    """A device. At least one of `contactId` and `userId` is given."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                {"anyOf": [given("contactId"), given("userId")]},
                {"anyOf": [_on(name, token) for name, token in TOKENS.items()]},
            ],
            "examples": [
                {
                    "contactId": "01a1fb37-a4a4-7470-9fc2-6927566e64b5",
                    "platform": "ANDROID",
                    "token": "dBy5hqH0SpmU-example:APA91b-example",
                    "app": "com.example.app",
                    "locale": "en-GB",
                    "timeZone": "Europe/London",
                    "name": "Pixel",
                }
            ],
        }
    )

    contact_id: RecordId | None = None
    user_id: RecordId | None = None
    platform: PlatformName
    token: Token
    app: (
        Annotated[
            str,
            StringConstraints(pattern=r"^[A-Za-z0-9._:/-]+$", max_length=200),
            Field(description="The app: on IOS its bundle id."),
        ]
        | None
    ) = None
    environment: Annotated[Literal["PRODUCTION", "SANDBOX"], Upper] = "PRODUCTION"
    locale: (
        Annotated[
            str, StringConstraints(pattern=r"^[A-Za-z]{2,3}([_-][A-Za-z0-9]{2,8})*$", max_length=16)
        ]
        | None
    ) = None
    time_zone: (
        Annotated[
            str, StringConstraints(max_length=64), AfterValidator(_zone), Field(description="IANA.")
        ]
        | None
    ) = None
    name: Annotated[str, StringConstraints(max_length=200), Printable] | None = None


class DeviceEntries(Schema):
    """Many devices, each as one alone is given. A bad one fails no other."""

    entries: Annotated[list[DeviceInput], Field(min_length=1, max_length=500)]


class DeviceBody(RootModel[DeviceInput | DeviceEntries]):
    """One device, or many (for the description: each is read with its own schema)."""


class ReplaceInput(Schema):
    """The token that takes the place of the device's."""

    token: Token


class DevicesQuery(Query):
    """The query of GET /devices."""

    contact_id: RecordId | None = None
    limit: Limit = 50
    cursor: Cursor | None = None


DEVICE = TypeAdapter(DeviceInput)
REPLACE = TypeAdapter(ReplaceInput)


def read_device(body: object) -> Registration:
    """Return a device to register. Raises InvalidPayload with every invalid field."""
    device = parse(DEVICE, body)
    if device.contact_id is None and device.user_id is None:
        raise InvalidPayload.at("contactId", "give contactId or userId")
    return Registration(
        platform=device.platform,
        token=device_tokens.parse(device.platform, device.token),
        contact_id=device.contact_id or "",
        user_id=device.user_id or "",
        app=device.app or "",
        environment=device.environment,
        locale=device.locale or "",
        zone=device.time_zone or "",
        name=device.name or "",
    )
