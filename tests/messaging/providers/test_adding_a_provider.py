"""docs/adding-a-provider.md: its example, written to a file and registered, sends a message."""

import importlib.util
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import orjson
import pytest
from django.core.management import call_command

from messaging import providers
from messaging.feedback import tasks
from messaging.models import Attempt, Delivery, ProviderAccount, Suppression
from rme.core.cache import TtlCache
from rme.core.outcomes import (
    Accepted,
    Fault,
    Gone,
    Misconfigured,
    Outcome,
    Rejected,
    Retryable,
    Unknown,
)
from rme.core.provider import Dispatch, Provider, Push, Sms
from rme.transport import AddressPolicy, Transport
from tests import factories
from tests.fakes import http1
from tests.fakes.http1 import Http1Server
from tests.rest import message, work

DOCUMENT = Path(__file__).parents[3] / "docs" / "adding-a-provider.md"


def block(language: str, containing: str = "") -> str:
    """Return the document's one code block in a language that contains a text."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", DOCUMENT.read_text(), re.M | re.S)
    (found,) = (each for each in blocks if containing in each)
    return str(found)


def run(name: str, path: Path, source: str) -> ModuleType:
    """Write a module and import it under a name."""
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def applied(source: str, diff: str) -> str:
    """Return a text with a diff's lines added, each behind the line before it."""
    lines = source.splitlines()
    before = ""
    for line in diff.splitlines():
        if line.startswith("+"):
            assert lines.count(before) == 1
            lines.insert(lines.index(before) + 1, line[1:])
        before = line[1:]
        assert before in lines
    return "\n".join(lines) + "\n"


@pytest.fixture
def registered(tmp_path: Path) -> Iterator[type[Provider]]:
    """The example in the registry, as the document's two steps put it there."""
    run("messaging.providers.examplesms", tmp_path / "examplesms.py", block("python", "ExampleSms"))
    registry = applied(inspect.getsource(providers), block("diff"))
    try:
        changed = run("registry_with_example", tmp_path / "registry.py", registry)
        assert set(changed.REGISTRY) - set(providers.REGISTRY) == {"example_sms"}
        providers.REGISTRY["example_sms"] = changed.REGISTRY["example_sms"]
        yield changed.REGISTRY["example_sms"]
    finally:
        providers.REGISTRY.pop("example_sms", None)
        for name in ("messaging.providers.examplesms", "registry_with_example"):
            sys.modules.pop(name, None)
        TtlCache.clear_all()


@pytest.fixture
def push_registered(tmp_path: Path) -> Iterator[type[Provider]]:
    """The example of a push provider, in the registry."""
    source = block("python", "ExamplePush")
    try:
        module = run("push.providers.examplepush", tmp_path / "examplepush.py", source)
        providers.REGISTRY["example_push"] = module.ExamplePush
        yield module.ExamplePush
    finally:
        providers.REGISTRY.pop("example_push", None)
        sys.modules.pop("push.providers.examplepush", None)
        TtlCache.clear_all()


@pytest.fixture
def transport() -> Iterator[Transport]:
    own = Transport(AddressPolicy(["127.0.0.1"]))
    yield own
    own.close()


def account(org, server: Http1Server, kind: str = "example_sms", **more: str) -> ProviderAccount:
    settings = {"token": "secret", "base_url": server.url.rstrip("/"), **more}
    TtlCache.clear_all()
    return ProviderAccount.objects.create(
        organization=org,
        name="example",
        kind=kind,
        channel="PUSH" if kind == "example_push" else "SMS",
        credentials=orjson.dumps(settings).decode(),
    )


@pytest.mark.django_db
def test_example_sends_a_message_of_a_caller(org, api, transport, registered):
    with Http1Server(lambda c, _: http1.respond(c, 202, b'{"id": "m-1"}')) as server:
        account(org, server, sender="Acme")
        contact = factories.contact(org, mobile="+12125550123")
        assert api.send(message(contact, channel="SMS")).status_code == 202
        work(transport)
        (seen,) = server.seen
    attempt = Attempt.objects.get()
    assert Delivery.objects.get().status == "SENT"
    assert seen.path == "/messages"
    assert orjson.loads(seen.body)["to"] == "+12125550123"
    headers = {name.lower(): value for name, value in seen.headers}
    assert headers["authorization"] == "Bearer secret"
    assert headers["idempotency-key"] == str(attempt.pk)


@pytest.mark.django_db
def test_a_dead_number_is_suppressed_by_the_example(org, api, transport, registered):
    refusal = b'{"error": "unknown_number"}'
    with Http1Server(lambda c, _: http1.respond(c, 400, refusal)) as server:
        account(org, server, sender="Acme")
        contact = factories.contact(org, mobile="+12125550123")
        api.send(message(contact, channel="SMS"))
        work(transport)
    assert Suppression.objects.get().address == "+12125550123"


@pytest.mark.django_db
def test_the_example_needs_no_migration(registered):
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [
        (200, b'{"id": "m-1"}', Accepted("m-1")),
        (202, b"no JSON", Accepted("")),
        (400, b'{"error": "unknown_number"}', Rejected("unknown number", hard=True)),
        (400, b'{"error": "text_refused"}', Rejected("the text was refused", Fault.CONTENT)),
        (400, b"[]", Rejected("refused: 400", Fault.CONTENT)),
        (403, b"", Misconfigured("refused: 403")),
        (429, b"", Retryable("refused: 429")),
        (500, b"", Unknown("unexpected answer: 500")),
    ],
)
def test_example_follows_its_outcome_table(
    transport, registered: type[Provider], status: int, body: bytes, outcome: Outcome
):
    with Http1Server(lambda c, _: http1.respond(c, status, body)) as server:
        settings = {"token": "secret", "base_url": server.url.rstrip("/")}
        provider = registered(registered.Settings.model_validate(settings))
        dispatch = Dispatch("0" * 32, Sms("+12125550123", "Hi"))
        assert provider.send([dispatch], transport) == [outcome]


@pytest.mark.django_db
@pytest.mark.parametrize(("status", "active"), [(200, True), (410, False)])
def test_the_push_example_reaches_a_device_and_reports_a_dead_one(
    org, api, transport, push_registered, status, active
):
    with Http1Server(lambda c, _: http1.respond(c, status, b"{}")) as server:
        account(org, server, "example_push")
        contact = factories.contact(org)
        device = factories.device(org, contact, "example-token")
        assert api.send(message(contact, channel="PUSH")).status_code == 202
        work(transport)
        (seen,) = server.seen
    assert (seen.path, orjson.loads(seen.body)["to"]) == ("/pushes", "example-token")
    headers = {name.lower(): value for name, value in seen.headers}
    assert headers["authorization"] == "Bearer secret"
    tasks.retire_devices()
    device.refresh_from_db()
    assert device.active is active


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, Accepted("0" * 32)),
        (401, Misconfigured("the token was refused")),
        (410, Gone("unregistered")),
        (500, Unknown("unexpected answer: 500")),
    ],
)
def test_push_example_follows_its_outcome_table(
    transport, push_registered: type[Provider], status: int, outcome: Outcome
):
    with Http1Server(lambda c, _: http1.respond(c, status, b"")) as server:
        settings = {"token": "secret", "base_url": server.url.rstrip("/")}
        provider = push_registered(push_registered.Settings.model_validate(settings))
        dispatch = Dispatch("0" * 32, Push("token", "ANDROID", "Hi", "There"))
        assert provider.send([dispatch], transport) == [outcome]


def test_the_push_example_waits_when_it_is_asked_to(transport, push_registered: type[Provider]):
    with Http1Server(lambda c, _: http1.respond(c, 429, b"", {"Retry-After": "7"})) as server:
        settings = {"token": "secret", "base_url": server.url.rstrip("/")}
        provider = push_registered(push_registered.Settings.model_validate(settings))
        dispatch = Dispatch("0" * 32, Push("token", "ANDROID", "Hi", "There"))
        assert provider.send([dispatch], transport) == [Retryable("too many pushes", 7.0)]
        (again,) = provider.send([dispatch], transport)
        assert isinstance(again, Retryable) and len(server.seen) == 1
