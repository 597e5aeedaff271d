"""The two endpoints of the bot API.

Checks follow the contract's order: key, method, content type, action, parameters. A caller without
a key learns nothing. REST framework checks in the same order.
"""

from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar, cast

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from bot import actions, callers, creates, envelope, forms, platform_errors, policy, schemas
from bot.envelope import BotFailure, UnauthorizedCall
from bot.forms import Parameters
from bot.policy import BotPolicy
from rme.core import errors, logs
from rme.core.db import statement_timeout
from rme.core.http.api import JsonView, id_of
from rme.core.http.parsing import IDEMPOTENCY_KEY, read_idempotency_key
from rme.core.telemetry.meters import Counter
from rme.crm.connectors.base import Deadline, PlatformError
from rme.crm.contacts import connector_of
from rme.tenants.oauth.api_keys import KeyRecord

A = TypeVar("A", actions.Confirm, actions.Create)
CALLS = Counter("rme_bot_calls_total", "Bot calls.", ["action", "code"])


class BotCall:
    """An authenticated call."""

    def __init__(self, request: HttpRequest, key: KeyRecord, deadline: Deadline) -> None:
        self.request, self.key, self.deadline = request, key, deadline
        self.request_id = id_of(request)
        self.policy: BotPolicy = policy.of(key.organization.id)
        self.connector = connector_of(key.organization.id)
        self.action = ""

    def choose(self, table: Mapping[str, A], parameters: Parameters) -> A:
        """Return the action that the call names. Raise BotFailure if it is unknown or forbidden."""
        action_names = parameters.all("action")
        name = action_names[0] if len(action_names) == 1 else ""
        if name not in table:
            raise envelope.invalid("action", "is not one of this path", "unknown_action")
        if not self.key.allows(name):
            raise UnauthorizedCall
        self.action = name
        return table[name]

    def read(
        self, action: actions.Confirm | actions.Create, parameters: Parameters
    ) -> dict[str, str]:
        """Return the values of an action's parameters. Raise BotFailure."""
        lenient = self.request.method == "GET"
        region = self.key.organization.region
        return schemas.read(action.parameters, parameters, region=region, lenient=lenient)


class _AuthenticatedRequest(HttpRequest):
    """A request whose key has been checked; error responses read the call from it."""

    bot_call: BotCall


class KeyAuthentication(BaseAuthentication):
    """Authentication by organization id (query or form) and API key (header)."""

    def authenticate(self, request: Request) -> tuple[AnonymousUser, KeyRecord]:
        """Return the key, with an anonymous Django user. Raise BotFailure (401, 429)."""
        http = request._request
        organization_id = forms.organization(forms.query(http), forms.form(http).parameters)
        return AnonymousUser(), callers.authenticate(http, organization_id)


class BotView(JsonView):
    """Base of both endpoints: a deadline for each call, and one form of response."""

    schema = None  # it is described in docs/bot.md, and is no part of the REST API
    authentication_classes = (KeyAuthentication,)
    permission_classes = ()
    default_response_headers: dict[str, str] = {}
    deadline: Deadline
    call: BotCall

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        self.deadline = Deadline.after(settings.BOT_SECONDS)
        try:
            with statement_timeout.bounded(self.deadline.until):
                return super().dispatch(request, *args, **kwargs)
        except statement_timeout.StatementLate as error:
            return _fail(request, error)

    def check_throttles(self, request: Request) -> None:
        """Count the authenticated call against its organization's rate limits."""
        http, key = request._request, cast(KeyRecord, request.auth)
        self.call = BotCall(http, key, self.deadline)
        cast(_AuthenticatedRequest, http).bot_call = self.call
        callers.check_limits(key)

    def handle_exception(self, exc: Exception) -> Any:
        """Respond to expected failures; `rme.core.http.api` logs and answers all others."""
        if isinstance(exc, BotFailure | PlatformError):
            return _fail(self.request._request, exc)
        raise exc

    def http_method_not_allowed(self, request: object, *args: object, **kwargs: object) -> NoReturn:
        (method,) = self.allowed_methods
        message = f"This path takes {method} alone"
        raise BotFailure(405, "method_not_allowed", message, headers={"Allow": method})


class ConfirmView(BotView):
    """Look-ups: `GET api.php`."""

    http_method_names = ["get"]

    def get(self, request: Request) -> HttpResponse:
        """Return the records that match."""
        call, query = self.call, forms.query(request._request)
        action = call.choose(actions.CONFIRM, query)
        values = call.read(action, query)
        search = actions.RecordSearch(
            call.connector, call.key.organization.region, call.policy.max_records, call.deadline
        )
        body = envelope.found_body(action.records(search, values), call.request_id)
        return _respond(request._request, body, {})


class CreateView(BotView):
    """Creates: `POST api_create.php`."""

    http_method_names = ["post"]

    def post(self, request: Request) -> HttpResponse:
        """Create a record, or return the existing one."""
        call, form = self.call, forms.form(request._request)
        if form.problem:
            raise form.problem
        action = call.choose(actions.CREATE, form.parameters)
        new = action.new(call.read(action, form.parameters))
        create_request = creates.CreateRequest(new, call.key.id, _idempotency_key(request._request))
        result = creates.create(
            create_request, connector=call.connector, policy=call.policy, deadline=call.deadline
        )
        body = envelope.created_body(new.kind, result.id, call.request_id, created=result.created)
        return _respond(request._request, body, {})


def _fail(request: HttpRequest, error: Exception) -> HttpResponse:
    call: BotCall | None = getattr(request, "bot_call", None)
    is_create = call is not None and call.action in actions.CREATE
    failure = platform_errors.failure_of(error, creates=is_create)
    return _respond(request, failure.body(id_of(request)), failure.headers)


def _respond(request: HttpRequest, body: envelope.Body, headers: Mapping[str, str]) -> HttpResponse:
    """Build the response by the organization's settings, and count the call for its key."""
    call: BotCall | None = getattr(request, "bot_call", None)
    if call:
        _count(call, body["code"])
    always_200 = call is not None and call.policy.always_200
    return envelope.respond(body, always_200=always_200, headers=headers)


def _count(call: BotCall, code: int) -> None:
    """Count a call, and add the action and code to its log line."""
    action = call.action or "(none)"
    logs.caller.set({**logs.caller.get(), "action": action, "code": code})
    CALLS.add(action, str(code))


def _idempotency_key(request: HttpRequest) -> str:
    """Return the Idempotency-Key header without quotes. Raise BotFailure if it is invalid."""
    header = request.headers.get(IDEMPOTENCY_KEY, "")
    text = read_idempotency_key(header, schemas.LENGTH_LIMIT)
    if text is None:
        raise envelope.invalid(IDEMPOTENCY_KEY, "must be at most 255 printable characters")
    return text


def render_error(request: HttpRequest, error: errors.ApiError) -> HttpResponse:
    """Build the response to an unexpected error (called by `rme.core.http.api`)."""
    failure = (
        UnauthorizedCall()
        if error.status == 401
        else BotFailure(error.status, error.code.lower(), error.message, headers=error.headers)
    )
    return _respond(request, failure.body(id_of(request)), failure.headers)


api, api_create = ConfirmView.as_view(), CreateView.as_view()
