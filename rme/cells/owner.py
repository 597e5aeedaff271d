"""`POST /cell/owner`: whether this cell has an organization or a person, asked by the router.

The question is signed (`signatures`). It holds no secret: of a token it has the digest, of an API
key the public part. Whether a credential is still valid is decided where it is used.
An organization whose rows have gone keeps its placement.
"""

from typing import Any
from uuid import UUID

import orjson
from django.conf import settings
from django.db import Error
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from oauth2_provider.models import AccessToken

from messaging.models import Delivery, ProviderAccount
from rme.cells import placements, signatures
from rme.core.db import availability
from rme.tenants.models import ApiKey, Application, Invitation, Organization, User

QUESTION_LIMIT = 4096
_OWNED: dict[str, tuple[type[Model], str, str]] = {
    "token": (AccessToken, "token_checksum", "application__organization_id"),
    "client": (Application, "client_id", "organization_id"),
    "api_key": (ApiKey, "public_id", "organization_id"),
    "organization": (Organization, "pk", "pk"),
    "provider_account": (ProviderAccount, "public_id", "organization_id"),
    "delivery": (Delivery, "pk", "organization_id"),
    "invitation": (Invitation, "digest", "organization_id"),
}
"""The model of each kind of key, the column that has the key, and the way to its organization."""
PERSON = "person"


class BadQuestion(ValueError):
    """The question has no known kind, or a value that no key has."""


@csrf_exempt
def show(request: HttpRequest) -> HttpResponse:
    """Answer with the organization of a key, and the cell where it is; both are empty if unknown.

    404 for callers who cannot sign.
    """
    if int(request.META.get("CONTENT_LENGTH") or 0) > QUESTION_LIMIT:
        return _answer(413)
    purpose = signatures.call_purpose(str(request.method), request.path_info)
    header = request.headers.get("Authorization", "")
    if not signatures.is_signed(settings.CELL_SECRET, purpose, request.body, header):
        return _answer(404)
    try:
        organization, cell = find(*_question(request.body))
    except BadQuestion:
        return _answer(400)
    except Error as error:
        if not availability.is_unavailable(error):
            raise
        availability.discard(error)
        return _answer(503)
    return _answer(200, {"organization": organization, "cell": cell})


def find(kind: str, value: str) -> tuple[str, str]:
    """Return the organization of a key, and the cell where it is. Raise BadQuestion."""
    if kind == PERSON:
        condition = Q(username=value) | Q(email__iexact=value)
        has_account = User.objects.filter(condition, is_staff=True, is_active=True).exists()
        return "", settings.CELL if has_account else ""
    if kind not in _OWNED:
        raise BadQuestion
    model, column, way = _OWNED[kind]
    if kind == "delivery":
        _check_id(value)
    rows: QuerySet[Any] = model._default_manager.filter(**{column: value})
    organization = rows.values_list(way, flat=True).first()
    if organization is None and kind == "organization" and placements.where(value).phase:
        organization = value  # it has moved, and its rows are gone
    return (organization, _cell_of(organization)) if organization else ("", "")


def _question(body: bytes) -> tuple[str, str]:
    try:
        question = orjson.loads(body)
        kind, value = question["kind"], question["value"]
    except (ValueError, KeyError, TypeError) as error:
        raise BadQuestion from error
    if not isinstance(kind, str) or not isinstance(value, str) or "\0" in value:
        raise BadQuestion
    return kind, value


def _check_id(value: str) -> None:
    try:
        UUID(value)
    except ValueError as error:
        raise BadQuestion from error


def _cell_of(organization_id: str) -> str:
    """Return the cell that serves an organization: another one, if it has moved or is arriving."""
    placement = placements.where(organization_id)
    return placement.cell if placement.is_elsewhere else str(settings.CELL)


def _answer(status: int, body: dict[str, str] | None = None) -> HttpResponse:
    text = orjson.dumps(body) if body is not None else b""
    return HttpResponse(text, status=status, content_type="application/json")
