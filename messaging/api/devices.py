"""Registering, querying, replacing and removing devices."""

from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from messaging.api.common import caller, page, request_id
from messaging.api.description import devices as description
from messaging.reports import queries
from push import devices, vapid
from push.devices import Registration
from push.inputs import DEVICES, REPLACE, DevicesQuery, read_device
from rme.core import errors
from rme.core.http.api import ApiView, json_response
from rme.core.http.json import may_hold_nul, refuse_nul
from rme.core.http.parsing import parse


class DevicesView(ApiView):
    """The devices of an organization."""

    query_parameters = {"GET": DevicesQuery.parameters()}

    @description.lists()
    def get(self, request: Request) -> HttpResponse:
        """Give a page of devices, newest first."""
        wanted = DevicesQuery.read(request.query_params.dict())
        rows, last = devices.find(
            caller(request).organization.id,
            limit=wanted.limit,
            contact_id=wanted.contact_id,
            before=queries.read_cursor(wanted.cursor) if wanted.cursor else None,
        )
        following = queries.cursor_of(last) if last else None
        return page(request, {"devices": [devices.listed(row) for row in rows]}, following)

    @description.registers()
    def post(self, request: Request) -> HttpResponse:
        """Register one device, or many; a bad one of many fails no other."""
        body = request.data
        many = isinstance(body, dict) and "entries" in body
        items = parse(DEVICES, body).entries if many else [body]
        look = may_hold_nul(request._request.body)
        results = devices.register(
            caller(request).organization.id, [_read(item, look_for_nul=look) for item in items]
        )
        if many:
            return json_response(_each(results, request_id(request)), 201)
        (only,) = results
        if isinstance(only, errors.ApiError):
            raise only
        row, is_new = only
        return json_response(devices.shown(row), 201 if is_new else 200)


def _read(item: Any, *, look_for_nul: bool) -> Registration | errors.InvalidPayload:
    try:
        if look_for_nul:
            refuse_nul(item)
        return read_device(item)
    except errors.InvalidPayload as error:
        return error


def _each(results: list[devices.Registered | errors.ApiError], identifier: str) -> dict[str, Any]:
    shown = [
        {"index": index, "error": result.as_json(identifier)}
        if isinstance(result, errors.ApiError)
        else {"index": index, "entry": devices.shown(result.device)}
        for index, result in enumerate(results)
    ]
    taken = sum("entry" in each for each in shown)
    return {"accepted": taken, "rejected": len(shown) - taken, "results": shown}


class DeviceView(ApiView):
    """One device."""

    @description.removes()
    def delete(self, request: Request, device_id: str) -> HttpResponse:
        """Forget a device."""
        devices.remove(caller(request).organization.id, device_id)
        response = HttpResponse(status=204)
        del response["Content-Type"]
        return response


class ReplaceView(ApiView):
    """A device's token."""

    @description.replaces()
    def post(self, request: Request, device_id: str) -> HttpResponse:
        """Give a device its new token."""
        body = request.data
        if may_hold_nul(request._request.body):
            refuse_nul(body)
        token = parse(REPLACE, body).token
        row = devices.replace(caller(request).organization.id, device_id, token)
        return json_response(devices.shown(row))


class VapidKeyView(ApiView):
    """The key that browsers subscribe with."""

    @description.shows_key()
    def get(self, request: Request) -> HttpResponse:
        """Give the public key."""
        return json_response({"key": vapid.public_key()})
