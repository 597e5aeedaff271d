"""The permission that each call of the REST API needs, and its check.

Routes without an entry are refused. A test enumerates all routes: add new ones here.
"""

from collections.abc import Mapping

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from rme.tenants.oauth.authentication import Caller
from rme.tenants.oauth.permissions import ProgramPermission, forbidden

SEND = "SEND"
"""The category of each message decides (`Grants.require_send`)."""
ANY_TOKEN = ""
"""Every application may make the call."""

_P = ProgramPermission
_ENDPOINT = "webhook-endpoints/<str:endpoint_id>"
PREFIX = "rme/v1/"
ROUTES: Mapping[tuple[str, str], str] = {
    ("GET", "messages"): _P.READ_MESSAGES,
    ("POST", "messages"): SEND,
    ("POST", "messages/bulk"): SEND,
    ("GET", "messages/<str:message_id>"): _P.READ_MESSAGES,
    ("DELETE", "messages/<str:message_id>"): SEND,
    ("GET", "consent"): _P.READ_CONSENT,
    ("POST", "consent"): _P.RECORD_CONSENT,
    ("GET", "devices"): _P.READ_DEVICES,
    ("POST", "devices"): _P.CHANGE_DEVICES,
    ("GET", "devices/vapid-key"): ANY_TOKEN,  # every web page that subscribes shows it
    ("DELETE", "devices/<str:device_id>"): _P.CHANGE_DEVICES,
    ("POST", "devices/<str:device_id>/replace"): _P.CHANGE_DEVICES,
    ("GET", "health"): _P.READ_HEALTH,
    ("GET", "templates"): _P.READ_TEMPLATES,
    ("POST", "templates/<str:name>/render"): _P.READ_TEMPLATES,
    ("GET", "suppressions"): _P.READ_SUPPRESSIONS,
    ("POST", "suppressions"): _P.CHANGE_SUPPRESSIONS,
    ("DELETE", "suppressions"): _P.CHANGE_SUPPRESSIONS,
    ("GET", "suppressions/<str:suppression_id>"): _P.READ_SUPPRESSIONS,
    ("DELETE", "suppressions/<str:suppression_id>"): _P.CHANGE_SUPPRESSIONS,
    ("GET", "webhook-endpoints"): _P.READ_WEBHOOKS,
    ("POST", "webhook-endpoints"): _P.CHANGE_WEBHOOKS,
    ("GET", _ENDPOINT): _P.READ_WEBHOOKS,
    ("PATCH", _ENDPOINT): _P.CHANGE_WEBHOOKS,
    ("DELETE", _ENDPOINT): _P.CHANGE_WEBHOOKS,
    ("POST", f"{_ENDPOINT}/rotate-secret"): _P.CHANGE_WEBHOOKS,
    ("POST", f"{_ENDPOINT}/test"): _P.CHANGE_WEBHOOKS,
    ("POST", f"{_ENDPOINT}/replay"): _P.CHANGE_WEBHOOKS,
}
"""The permission of each method and route below `PREFIX`."""


def needed(method: str, route: str) -> str | None:
    """Return the permission that a call needs; None for a call without an entry."""
    as_listed = "GET" if method == "HEAD" else method
    return ROUTES.get((as_listed, route.removeprefix(PREFIX)))


def require(caller: Caller, method: str, route: str) -> None:
    """Raise Forbidden unless a caller may make a call."""
    permission = needed(method, route)
    if permission is None:
        raise forbidden(f"{method} {route}")
    if permission not in (SEND, ANY_TOKEN):
        caller.grants.require(permission)
    elif permission == SEND and not caller.grants.categories:
        raise forbidden(SEND)


class RoutePermission(BasePermission):
    """Refuses calls without the application's permission (REST framework's hook)."""

    def has_permission(self, request: Request, view: object) -> bool:
        """Raise Forbidden, with the name of the missing permission."""
        match = request._request.resolver_match
        caller, method = request.auth, request.method or ""
        if not isinstance(caller, Caller):
            return False
        if match is not None and method in getattr(view, "allowed_methods", ()):
            require(caller, method, match.route)
        return True
