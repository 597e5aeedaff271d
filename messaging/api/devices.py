"""Devices: /devices, /devices/{id}, /devices/{id}/replace and /devices/vapid-key."""

from typing import Literal

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from pydantic import Field, RootModel
from rest_framework.request import Request

from messaging.api.common import (
    EntriesOutput,
    ErrorObject,
    Identifier,
    Output,
    TextOrNone,
    Time,
    answer,
    body_of,
    bulk,
    caller,
    entries_of,
    no_content,
    only,
    page,
    read_each,
    request_id,
)
from messaging.api.openapi import WITH_BODY, query, responses
from messaging.webhooks import device_events
from push import devices, vapid
from push.inputs import REPLACE, DeviceBody, DevicesQuery, ReplaceInput, read_device
from rme.core import errors
from rme.core.http.api import ApiView
from rme.core.http.fields import cursor_of, read_cursor
from rme.core.http.parsing import parse


class DeviceOutput(Output):
    """A device as registering answers with it."""

    device_id: Identifier = Field(validation_alias="pk")
    contact_id: TextOrNone
    platform: Literal["IOS", "ANDROID", "WEB", "PLATFORM"]
    active: bool
    registered_at: Time = Field(description="ISO 8601, UTC: the last registration.")


class DeviceListedOutput(DeviceOutput):
    """A device, without its token."""

    user_id: TextOrNone
    app: TextOrNone
    environment: Literal["PRODUCTION", "SANDBOX"]
    locale: TextOrNone
    time_zone: TextOrNone = Field(validation_alias="zone")
    name: TextOrNone
    last_seen_at: Time = Field(description="ISO 8601, UTC.")
    inactive_reason: TextOrNone = Field(
        description="The reason that the push service reported, or STALE.",
        examples=["Unregistered"],
    )
    inactive_since: Time | None = Field(description="ISO 8601, UTC.")


class DevicePageOutput(Output):
    devices: list[DeviceListedOutput]
    next_cursor: str | None


class DeviceResultOutput(Output):
    """One device of many as it is now, or what is wrong with it."""

    index: int
    entry: DeviceOutput | None = None
    error: ErrorObject | None = None


class DeviceBulkOutput(EntriesOutput):
    results: list[DeviceResultOutput]


class DeviceRegisteredOutput(RootModel[DeviceOutput | DeviceBulkOutput]):
    """The new device; of many, the result of each."""


class VapidKeyOutput(Output):
    """What a browser needs to subscribe."""

    key: str = Field(description="The applicationServerKey: a public key on P-256, base64url.")


class DevicesView(ApiView):
    """The devices of an organization."""

    query_parameters = {"GET": DevicesQuery.parameters()}

    @extend_schema(
        operation_id="list_devices",
        summary="Query the devices, newest first",
        description="Return a page of devices, newest first.",
        parameters=query(DevicesQuery),
        responses=responses({200: DevicePageOutput}, ()),
    )
    def get(self, request: Request) -> HttpResponse:
        """Return a page of devices, newest first."""
        wanted = DevicesQuery.read(request.query_params.dict())
        rows, last = devices.find(
            caller(request).organization.id,
            limit=wanted.limit,
            contact_id=wanted.contact_id,
            before=read_cursor(wanted.cursor),
            test=caller(request).test,
        )
        return page(request, DevicePageOutput, {"devices": rows}, cursor_of(last))

    @extend_schema(
        operation_id="register_devices",
        summary="Register a device, or up to 500",
        description="A token that is registered answers 200: it is the same device, active again, "
        "of the contact that is named now.",
        request={"application/json": DeviceBody},
        responses=responses(
            {200: DeviceOutput, 201: DeviceRegisteredOutput}, (*WITH_BODY, errors.NotFound)
        ),
    )
    def post(self, request: Request) -> HttpResponse:
        """Register one device, or many; a bad one of many fails no other."""
        items, many = entries_of(request)
        results = devices.register(
            caller(request).organization.id,
            read_each(request, items, read_device),
            device_events.write,
            test=caller(request).test,
        )
        if many:
            return bulk(DeviceBulkOutput, results, lambda each: each.device, request_id(request))
        registered = only(results)
        return answer(
            DeviceOutput.model_validate(registered.device), 201 if registered.is_new else 200
        )


class DeviceView(ApiView):
    """One device."""

    @extend_schema(
        operation_id="remove_device",
        summary="Forget a device",
        responses=responses({204: None}, (errors.NotFound,)),
    )
    def delete(self, request: Request, device_id: str) -> HttpResponse:
        """Forget a device."""
        who = caller(request)
        devices.remove(who.organization.id, device_id, device_events.write, test=who.test)
        return no_content()


class ReplaceView(ApiView):
    """A device's token."""

    @extend_schema(
        operation_id="replace_device_token",
        summary="Replace the token of a device",
        description="For the event `pushsubscriptionchange` of a browser, and for an app whose "
        "token was renewed. The device is active again.",
        request={"application/json": ReplaceInput},
        responses=responses({200: DeviceOutput}, (*WITH_BODY, errors.NotFound)),
    )
    def post(self, request: Request, device_id: str) -> HttpResponse:
        """Replace the token of a device."""
        token = parse(REPLACE, body_of(request)).token
        organization_id, test = caller(request).organization.id, caller(request).test
        row = devices.replace(organization_id, device_id, token, device_events.write, test=test)
        return answer(DeviceOutput.model_validate(row))


class VapidKeyView(ApiView):
    """The key that browsers subscribe with."""

    @extend_schema(
        operation_id="show_vapid_key",
        summary="Get the key that browsers subscribe with",
        description="Return the public key.",
        responses=responses({200: VapidKeyOutput}, ()),
    )
    def get(self, request: Request) -> HttpResponse:
        """Return the public key."""
        return answer(VapidKeyOutput(key=vapid.public_key()))
