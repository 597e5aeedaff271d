"""The Web Push demo: a page that registers the browser as a contact's device, and pushes to it.

It is for an organization's editors, with their admin session. Only `replace` needs none: a service
worker has no session, so it sends the reference that was signed when the device was registered.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import orjson
from django.contrib.admin.views.decorators import staff_member_required
from django.contrib.staticfiles import finders
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from messaging.accept import send_push
from messaging.pages import brand
from messaging.webhooks import device_events
from push import devices, vapid
from push.inputs import read_device
from push.models import Device
from rme.core import errors
from rme.core.db.clock import iso
from rme.core.http.api import error_response, id_of, json_response
from rme.core.http.parsing import refuse_nul
from rme.crm.models import Contact
from rme.tenants.access.roles import Permission, organizations_for
from rme.tenants.models import Organization

SALT = "push-demo"
APP = "push-demo"
CONTACTS_SHOWN = 100
BODY_LIMIT = 16 * 1024

Call = Callable[[HttpRequest, dict[str, Any]], Mapping[str, Any]]


def _organization(request: HttpRequest) -> Organization:
    """Return the requested organization, or the first, of those that the user may edit."""
    requested = request.GET.get("org", "").replace("\x00", "")
    organizations = organizations_for(request, Permission.CHANGE_PEOPLE)
    organization = (
        organizations.filter(pk=requested).first() if requested else organizations.first()
    )
    if organization is None:
        raise Http404
    return organization


@require_GET
@staff_member_required
def show(request: HttpRequest) -> HttpResponse:
    """Show the page."""
    organization = _organization(request)
    contacts = Contact.objects.filter(organization=organization).order_by("last_name", "id")
    return render(
        request,
        "public/push_demo.html",
        {
            "organization": organization,
            "brand": brand.of(organization.brand_color),
            "contacts": contacts[:CONTACTS_SHOWN],
            "key": vapid.public_key(),
        },
    )


@require_GET
def worker(request: HttpRequest) -> HttpResponse:
    """Return the service worker. Its path is below the page's, which is its scope."""
    with open(str(finders.find("push/worker.js")), "rb") as file:
        response = HttpResponse(file.read(), content_type="text/javascript")
    response["Service-Worker-Allowed"] = "/push-demo"
    response["Cache-Control"] = "no-cache"
    return response


def _call(call: Call) -> Callable[[HttpRequest], HttpResponse]:
    """Make a function of a JSON object a view that answers errors as the REST API does."""

    @require_POST
    @wraps(call)
    def wrapped(request: HttpRequest) -> HttpResponse:
        try:
            return json_response(call(request, _body(request)))
        except errors.ApiError as error:
            return error_response(error, id_of(request))

    return wrapped


def render_error(request: HttpRequest, error: errors.ApiError) -> HttpResponse:
    return error_response(error, id_of(request))


def _body(request: HttpRequest) -> dict[str, object]:
    if len(request.body) > BODY_LIMIT:
        raise errors.PayloadTooLarge
    try:
        body = orjson.loads(request.body)
    except orjson.JSONDecodeError:
        body = None
    if not isinstance(body, dict):
        raise errors.InvalidPayload("The body must be a JSON object.")
    refuse_nul(body)
    return body


@staff_member_required
@_call
def register(request: HttpRequest, body: dict[str, object]) -> Mapping[str, object]:
    """Register this browser as a device of a contact."""
    organization = _organization(request)
    device = read_device({"name": "Push demo", **body, "platform": "WEB", "app": APP})
    (result,) = devices.register(organization.pk, [device], device_events.write)
    if isinstance(result, errors.ApiError):
        raise result
    row = result.device
    reference = signing.dumps([organization.pk, str(row.pk)], salt=SALT)
    return {**_shown(row), "reference": reference}


@staff_member_required
@_call
def send(request: HttpRequest, body: dict[str, Any]) -> Mapping[str, Any]:
    """Send a push to a contact's devices."""
    result = send_push(
        _organization(request).pk,
        body.get("contactId", ""),
        title=body.get("title", ""),
        body=body.get("body", ""),
    )
    return {"messageId": result.message_id, "status": result.status}


@csrf_exempt
@_call
def replace(request: HttpRequest, body: dict[str, object]) -> Mapping[str, object]:
    """Replace a device's subscription by the browser's new one."""
    try:
        organization_id, device_id = signing.loads(str(body.get("reference")), salt=SALT)
    except signing.BadSignature:
        raise errors.NotFound("This device doesn't exist.") from None
    token = body.get("token")
    return _shown(devices.replace(organization_id, device_id, token, device_events.write))


def _shown(row: Device) -> dict[str, object]:
    return {
        "deviceId": str(row.pk),
        "contactId": row.contact_id or None,
        "platform": row.platform,
        "active": row.active,
        "registeredAt": iso(row.registered_at),
    }
