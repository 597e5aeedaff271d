"""The log: a line a request with ids, and nothing of what people are sent or where they live."""

import errno
import io
import logging
import re
from contextlib import contextmanager

import orjson
import pytest
from celery import current_app
from django.db import IntegrityError, connection
from django.test import Client
from django.urls import path

from messaging import providers
from messaging.models import ProviderAccount
from messaging.providers.simulator import Simulator
from rme import urls
from rme.core.http.api import ApiView
from rme.core.logs import add_traceback, formatter
from rme.tenants.models import Organization
from rme.transport import AddressPolicy, Transport
from tests import factories
from tests.rest import REQUEST_ID, error, message, work

SECRETS = ("ada.private", "private.example", "2125550199", "Lovelace", "swordfish", "tr0ub4dor")


@contextmanager
def written(*, json=True):
    """Collect what the log would have on standard error, at its finest level."""
    root, text = logging.getLogger(), io.StringIO()
    handler, level = logging.StreamHandler(text), root.level
    handler.setFormatter(formatter(json=json))
    root.addHandler(handler)
    root.setLevel("DEBUG")
    try:
        yield text
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def lines(text):
    return [orjson.loads(line) for line in text.getvalue().splitlines()]


def own(text, event):
    """Return the lines of an event without values that differ from run to run."""
    found = [line for line in lines(text) if line["event"] == event]
    for line in found:
        line.pop("timestamp")
        line.pop("ms", None)
    return found


def secrets_in(text):
    return [secret for secret in SECRETS if secret in text.getvalue()]


@pytest.fixture
def ada(org):
    return factories.contact(
        org,
        last_name="Lovelace",
        email="ada.private@private.example",
        mobile="+12125550199",
    )


@pytest.mark.promise("calls-10")
def test_a_request_is_one_line_with_ids(org, api):
    with written() as text:
        assert api.call("GET", "/messages?contactId=ada.private").status_code == 200
    assert own(text, "request") == [
        {
            "event": "request",
            "level": "info",
            "logger": "rme.core.http.api",
            "method": "GET",
            "path": "/rme/v1/messages",
            "status": 200,
            "request_id": REQUEST_ID,
            "organization_id": "acme",
            "application_id": api.application.pk,
        }
    ]
    assert secrets_in(text) == []


@pytest.mark.parametrize(
    ("url", "level", "shown"),
    [
        ("/rme/v1/messages/ada.private", "info", "/rme/v1/messages/<str:message_id>"),
        ("/rme/v1/nowhere/ada.private", "debug", "(none)"),
        ("/services/oauth2/token", "info", "/services/oauth2/token"),
        ("/livez?swordfish", "debug", "/livez"),
    ],
)  # fmt: skip
def test_a_path_is_logged_by_its_route(db, url, level, shown):
    with written() as text:
        Client().get(url, headers={"X-Request-Id": REQUEST_ID})
    (line,) = own(text, "request")
    assert (line["level"], line["path"], line["method"]) == (level, shown, "GET")
    assert "organization_id" not in line
    assert secrets_in(text) == []


def test_a_caller_is_not_logged_with_the_next_request(org, api):
    with written() as text:
        api.call("GET", "/messages/none")
        Client().get("/readyz")
    first, second = own(text, "request")
    assert first["organization_id"] == "acme"
    assert {"organization_id", "application_id"} & set(second) == set()


@pytest.mark.parametrize("json", [True, False])
def test_sending_logs_no_personal_data(org, api, ada, json):
    template = {"context": {"variables": {"note": "swordfish"}}}
    literal = {"template": None, "content": {"subject": "swordfish", "text": "tr0ub4dor"}}
    with written(json=json) as text:
        for body in (
            message(ada, **template),
            message(ada, channel="SMS", **template),
            message(ada, **literal, metadata={"name": "Lovelace"}),
            message(ada, **template, category="MARKETING"),
            message(ada, template={"name": "tr0ub4dor", "language": "en_US"}),
            message(ada, to=[{"contactId": "ada.private"}]),
            {"to": "ada.private@private.example", "swordfish": 1},
        ):
            api.send(body, **{"Idempotency-Key": f"swordfish-{body.get('channel')}"})
            api.bulk([body])
        api.call("POST", "/messages", b'{"a": "swordfish')
        work()
        api.call("GET", f"/messages?contactId={ada.pk}")
    assert secrets_in(text) == []
    assert len(re.findall(r"/rme/v1/messages", text.getvalue())) >= 16


class Clumsy(Simulator):
    """A provider that stumbles over an address, and says so."""

    kind = "clumsy"

    def send(self, dispatches, transport, progress=None):
        return super(Simulator, self).send(dispatches, transport)

    def request(self, dispatch):
        raise ValueError(f"cannot write {dispatch.content!r}")


def test_an_exception_of_a_provider_is_logged_without_the_recipient(org, api, ada, monkeypatch):
    monkeypatch.setitem(providers.REGISTRY, "clumsy", Clumsy)
    ProviderAccount.objects.create(
        organization=org, name="clumsy", kind="clumsy", channel="EMAIL", credentials="{}"
    )
    with written() as text:
        api.send(message(ada, context={"variables": {"note": "swordfish"}}))
        work(Transport(AddressPolicy([])))
    assert secrets_in(text) == []
    (line,) = own(text, "provider.request")
    assert line["exception"].startswith("Traceback (most recent call last):\n")
    assert line["exception"].endswith("\nbuiltins.ValueError")
    assert "in request" in line["exception"]


class Stumbling(ApiView):
    """A view with a fault that shows only with some addresses."""

    def post(self, request):
        address = request.data["address"]
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT %s::integer", [address])
        except Exception as error:
            raise RuntimeError(f"lost {address}") from error


# in place of a route whose permission applications have
urlpatterns = [path("rme/v1/suppressions", Stumbling.as_view()), *urls.urlpatterns]


@pytest.mark.promise("errors-25")
def test_an_unexpected_error_is_logged_without_its_message(org, api, settings):
    settings.ROOT_URLCONF = __name__
    with written() as text:
        answer = api.call("POST", "/suppressions", {"address": "ada.private@private.example"})
    assert (answer.status_code, answer.json()) == (
        500,
        error("INTERNAL_ERROR", "Something went wrong on our side."),
    )
    assert secrets_in(text) == []
    (line,) = own(text, "request.failed")
    assert (line["level"], line["request_id"], line["organization_id"]) == (
        "error",
        REQUEST_ID,
        "acme",
    )
    told = line["exception"]
    assert "psycopg.errors.InvalidTextRepresentation sqlstate=22P02\nwhich led to:\n" in told
    assert told.endswith("\nbuiltins.RuntimeError")
    assert "in post" in told


def test_a_database_error_is_logged_with_its_constraint(org):
    with pytest.raises(IntegrityError) as raised:
        Organization.objects.create(id="acme", name=SECRETS[0])
    told = add_traceback(None, "", {"exc_info": raised.value})["exception"]
    assert (
        "psycopg.errors.UniqueViolation sqlstate=23505 table_name=tenants_organization "
        "constraint_name=tenants_organization_pkey\n"
    ) in told
    assert told.endswith("\ndjango.db.utils.IntegrityError")
    assert SECRETS[0] not in told


def test_error_of_the_system_is_logged_with_its_number():
    told = add_traceback(None, "", {"exc_info": OSError(errno.ENOSPC, SECRETS[0])})["exception"]
    assert told.endswith("\nbuiltins.OSError errno=ENOSPC")
    assert SECRETS[0] not in told


def test_line_without_an_exception_has_no_traceback():
    for given in (None, False, (None, None, None)):
        assert add_traceback(None, "", {"event": "x", "exc_info": given}) == {"event": "x"}
    assert add_traceback(None, "", {"event": "x"}) == {"event": "x"}


def test_failed_task_is_logged_without_its_error_message():
    @current_app.task(name="tests.fails")
    def fails(address):
        raise LookupError(f"no such person: {address}")

    with written() as text:
        fails.apply(["ada.private@private.example"])
    current_app.tasks.pop("tests.fails")
    assert secrets_in(text) == []
    (line,) = own(text, "task.failed")
    assert (line["task"], line["level"]) == ("tests.fails", "error")
    assert line["exception"].endswith("\nbuiltins.LookupError")


def test_the_service_logs_by_this_formatter():
    (handler,) = [each for each in logging.getLogger().handlers if each.get_name() == "stderr"]
    assert type(handler.formatter) is type(formatter(json=False))
    assert add_traceback in handler.formatter.processors


def test_other_libraries_log_in_the_same_shape():
    with written() as text:
        try:
            raise KeyError(SECRETS[4])
        except KeyError:
            logging.getLogger("elsewhere").exception("it failed: %s", "here")
    (line,) = lines(text)
    assert (line["event"], line["logger"]) == ("it failed: here", "elsewhere")
    assert line["exception"].endswith("\nbuiltins.KeyError")
    assert secrets_in(text) == []
