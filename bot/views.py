"""The two paths of the bot service.

Checked in the contract's order: key, method, content type, action, parameters; so that a caller
without a key learns nothing.
"""

from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from bot import actions, callers, creating, envelope, faults, forms, policy, schemas
from bot.envelope import Failure, Unauthorized
from bot.forms import Parameters
from bot.policy import Policy
from rme.core import counters, errors, logs, watchdog
from rme.crm.connectors.base import Deadline, PlatformError
from rme.crm.contacts import connector_of
from rme.tenants.api_keys import KeyRecord

REPEAT_KEY = "Idempotency-Key"


class Call:
    """A call whose key is right."""

    def __init__(self, request: HttpRequest, key: KeyRecord, deadline: Deadline) -> None:
        self.request, self.key, self.deadline = request, key, deadline
        self.request_id: str = request.id  # type: ignore[attr-defined]
        self.policy: Policy = policy.of(key.organization.id)
        self.connector = connector_of(key.organization.id)
        self.action = ""

    def require_method(self, method: str) -> None:
        """Refuse other methods."""
        if self.request.method != method:
            told = f"This path takes {method} alone"
            raise Failure(405, "method_not_allowed", told, headers={"Allow": method})

    def choose(self, table: Mapping[str, Any], given: Parameters) -> Any:
        """Find the action in one of the tables. Raises Failure where the key may not."""
        named = given.all("action")
        name = named[0] if len(named) == 1 else ""
        if name not in table:
            raise envelope.invalid("action", "is not one of this path", "unknown_action")
        if not self.key.allows(name):
            raise Unauthorized
        self.action = name
        return table[name]

    def read(self, action: Any, given: Parameters) -> dict[str, str]:
        """Read the parameters of an action."""
        lenient = self.request.method == "GET"
        region = self.key.organization.region
        return schemas.read(action.parameters, given, region=region, lenient=lenient)


Work = Callable[[Call], envelope.Body]


@csrf_exempt
def api(request: HttpRequest) -> HttpResponse:
    """Look something up: `GET api.php`."""
    query = forms.query(request)
    form = forms.Form(forms.NOTHING) if request.method == "GET" else forms.form(request)

    def work(call: Call) -> envelope.Body:
        call.require_method("GET")
        action: actions.Confirm = call.choose(actions.CONFIRM, query)
        values = call.read(action, query)
        search = actions.Search(
            call.connector, call.key.organization.region, call.policy.max_records, call.deadline
        )
        return envelope.found(action.find(search, values), call.request_id)

    return _answer(request, forms.organization(query, form.parameters), work)


@csrf_exempt
def api_create(request: HttpRequest) -> HttpResponse:
    """Make something: `POST api_create.php`."""
    query, form = forms.query(request), forms.form(request)

    def work(call: Call) -> envelope.Body:
        call.require_method("POST")
        if form.problem:
            raise form.problem
        action: actions.Create = call.choose(actions.CREATE, form.parameters)
        new = action.new(call.read(action, form.parameters))
        asked = creating.Asked(new, call.key.id, _repeat_key(request))
        made = creating.create(
            asked, connector=call.connector, policy=call.policy, deadline=call.deadline
        )
        return envelope.created(new.kind, made.id, call.request_id, fresh=made.fresh)

    return _answer(request, forms.organization(query, form.parameters), work)


def _answer(request: HttpRequest, organization_id: str, work: Work) -> HttpResponse:
    """Do a call whose key is right, and answer in the one shape that answers have."""
    deadline, call = Deadline.after(settings.BOT_SECONDS), None
    body: envelope.Body
    headers: Mapping[str, str] = {}
    try:
        with watchdog.bounded(deadline.until):
            key = callers.caller_of(request, organization_id)
            call = request.bot_call = Call(request, key, deadline)  # type: ignore[attr-defined]
            callers.meter(key)
            body = work(call)
    except (Failure, PlatformError, watchdog.StatementLate) as error:
        creates = call is not None and call.action in actions.CREATE
        failure = faults.failure_of(error, creates=creates)
        body, headers = failure.body(request.id), failure.headers  # type: ignore[attr-defined]
    return _respond(request, body, headers)


def _respond(request: HttpRequest, body: envelope.Body, headers: Mapping[str, str]) -> HttpResponse:
    """Answer as the organization wishes, where it is known, and count the call for its key."""
    call: Call | None = getattr(request, "bot_call", None)
    if call:
        _count(call, body["code"])
    always_200 = call is not None and call.policy.always_200
    return envelope.respond(body, always_200=always_200, headers=headers)


def _count(call: Call, code: int) -> None:
    """Count a call for its key, and put what it was on its line in the log."""
    action = call.action or "(none)"
    logs.caller.set({**logs.caller.get(), "action": action, "code": code})
    counters.add("rme_bot_calls_total", call.key.public_id, action, str(code))


def _repeat_key(request: HttpRequest) -> str:
    """Read the Idempotency-Key: quoted (as the IETF draft has it) and bare are the same."""
    text = request.headers.get(REPEAT_KEY, "").strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        text = text[1:-1]
    if len(text) > schemas.LENGTH_LIMIT or not (text.isascii() and text.isprintable()):
        raise envelope.invalid(REPEAT_KEY, "must be at most 255 printable characters")
    return text


def speak(request: HttpRequest, error: errors.ApiError) -> HttpResponse:
    """Answer what no rule foresaw in the shape that bots read (`rme.core.api` calls this)."""
    failure = Failure(error.status, error.code.lower(), error.message, headers=error.headers)
    return _respond(request, failure.body(request.id), failure.headers)  # type: ignore[attr-defined]


api.speak = speak  # type: ignore[attr-defined]
api_create.speak = speak  # type: ignore[attr-defined]
