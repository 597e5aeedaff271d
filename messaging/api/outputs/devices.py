"""Devices, and what became of each of many."""

from typing import Literal

from pydantic import Field, RootModel

from messaging.api.outputs.common import ErrorObject, Output


class DeviceOutput(Output):
    """A device as registering answers with it."""

    device_id: str
    contact_id: str | None
    platform: Literal["IOS", "ANDROID", "WEB", "PLATFORM"]
    active: bool
    registered_at: str = Field(description="ISO 8601, UTC: the last registration.")


class DeviceListedOutput(DeviceOutput):
    """A device, without its token."""

    user_id: str | None
    app: str | None
    environment: Literal["PRODUCTION", "SANDBOX"]
    locale: str | None
    time_zone: str | None
    name: str | None
    last_seen_at: str = Field(description="ISO 8601, UTC.")
    inactive_reason: str | None = Field(
        description="What the push service said, or STALE.", examples=["Unregistered"]
    )
    inactive_since: str | None = Field(description="ISO 8601, UTC.")


class DevicePageOutput(Output):
    devices: list[DeviceListedOutput]
    next_cursor: str | None


class DeviceResultOutput(Output):
    """One device of many as it is now, or what is wrong with it."""

    index: int
    entry: DeviceOutput | None = None
    error: ErrorObject | None = None


class DeviceBulkOutput(Output):
    accepted: int
    rejected: int
    results: list[DeviceResultOutput]


class DeviceRegisteredOutput(RootModel[DeviceOutput | DeviceBulkOutput]):
    """The new device; of many, what became of each."""


class VapidKeyOutput(Output):
    """What a browser needs to subscribe."""

    key: str = Field(description="The applicationServerKey: a public key on P-256, base64url.")
