"""Composing a call: its fields, what is wrong with them, and the programs that are shown."""

import ast
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from messaging.console.developers import operations
from messaging.console.developers.operations import OPERATIONS
from rme.tenants.models import Membership
from tests import factories
from tests.messaging.console.conftest import url
from tests.rest import Api
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db
CLIENTS = Path(__file__).parents[4] / "clients"


@pytest.fixture
def developer(org):
    return person("dev", org, Membership.Role.DEVELOPER)


def texts(answer) -> dict[str, str]:
    return dict(answer.context["texts"])


def of_curl(text) -> tuple[str, str, Any]:
    """Return the method, the address and the body of a command line, as a shell reads it."""
    words = shlex.split(text.replace("\\\n", ""))
    assert words[:2] == ["curl", "-X"]
    body = json.loads(words[words.index("-d") + 1]) if "-d" in words else None
    return words[2], words[3], body


def of_python(text) -> tuple[str, list[Any], dict[str, Any]]:
    """Return the method and the arguments of the call on `rme` in a program."""
    calls = [each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Call)]
    (call,) = [
        each for each in calls
        if isinstance(each.func, ast.Attribute) and each.func.value.id == "rme"
    ]  # fmt: skip
    keywords = {each.arg: ast.literal_eval(each.value) for each in call.keywords}
    return call.func.attr, [ast.literal_eval(each) for each in call.args], keywords


def of_typescript(text) -> tuple[str, list[Any]]:
    """Return the method and the arguments, which are JSON, of the call on `rme`."""
    (name, arguments) = re.search(r"await rme\.(\w+)\((.*)\);\nconsole", text, re.S).groups()
    return name, json.loads(f"[{arguments}]")


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.key)
def test_each_call_starts_with_a_valid_example_in_three_languages(developer, operation):
    found = developer.get(url("compose"), {"operation": operation.key})
    shown = texts(found)
    method, address, body = of_curl(shown["curl"])
    path = operation.path.format(**operation.parameters)
    assert (method, address.partition("://")[2].partition("/")[2].partition("?")[0]) == (
        operation.method,
        path[1:],
    )
    values = [*operation.parameters.values(), *([body] if operation.body else [])]
    assert of_python(shown["Python"]) == (
        operation.name, values, {"dry_run": True} if operation.options else {},
    )  # fmt: skip
    name, arguments = of_typescript(shown["TypeScript"])
    assert arguments == [*values, *([{"dryRun": True}] if operation.options else [])]
    assert f"def {operation.name}(" in (CLIENTS / "python/rme_client/operations.py").read_text()
    assert f"  {name}(" in (CLIENTS / "typescript/src/operations.ts").read_text()
    posted = {"operation": operation.key}
    form = found.context["form"]
    posted |= {each: form[each].value() or "" for each in form.fields}
    if "variables" in posted or "context.variables" in posted:
        given = posted.get("context.variables", posted.get("variables"))
        assert given == "note = Hello"
    assert texts(developer.post(url("compose"), posted)) == shown


def test_composed_request_is_accepted_by_the_api(developer, org):
    ada = factories.contact(org)
    typed = {
        "operation": "dry-run", "channel": "EMAIL", "category": "TRANSACTIONAL",
        "to[0].contactId": str(ada.pk), "template.name": "welcome", "template.language": "en_US",
        "context.variables": "note = it's \"here\" = now\n", "metadata": "order = 7",
        "schedule.mode": "LOCAL", "schedule.time": "09:30",
    }  # fmt: skip
    shown = texts(developer.post(url("compose"), typed))
    _, address, body = of_curl(shown["curl"])
    assert body == {
        "channel": "EMAIL",
        "category": "TRANSACTIONAL",
        "to": [{"contactId": str(ada.pk)}],
        "template": {"name": "welcome", "language": "en_US"},
        "context": {"variables": {"note": 'it\'s "here" = now'}},
        "schedule": {"mode": "LOCAL", "time": "09:30"},
        "metadata": {"order": "7"},
    }
    answer = Api(org).call("POST", address.partition("/rme/v1")[2], body)
    assert (answer.status_code, answer.json()["recipients"][0]["status"]) == (200, "SCHEDULED")
    assert of_python(shown["Python"])[1:] == ([body], {"dry_run": True})
    bulk = texts(developer.post(url("compose"), {**typed, "operation": "bulk"}))
    assert of_curl(bulk["curl"])[2] == {"messages": [body]}
    assert of_typescript(bulk["TypeScript"])[1] == [{"messages": [body]}]


def test_invalid_input_is_kept_and_reported_at_its_field(developer):
    typed = {
        "operation": "send", "channel": "FAX", "category": "not a name", "to[0].contactId": "",
        "context.variables": "no sign", "schedule.mode": "AT", "schedule.at": "soon",
    }  # fmt: skip
    found = developer.post(url("compose"), typed)
    form = found.context["form"]
    assert set(form.errors) == {"channel", "context.variables"}
    again = developer.post(url("compose"), {**typed, "channel": "EMAIL", "context.variables": ""})
    form = again.context["form"]
    assert {"category", "schedule.at", "__all__"} <= set(form.errors)
    assert any(each.startswith("to: ") for each in form.errors["__all__"])
    assert form["category"].value() == "not a name"
    assert texts(again) == {}
    assert "can't be shown yet" in again.content.decode()
    unknown = developer.get(url("compose"), {"operation": "nothing"})
    assert unknown.context["operation"].key == "send"


def test_fields_come_from_the_api_description():
    send = operations.by_key("send")
    assert operations.choices_of(operations.field_schema(send, "channel")) == [
        "EMAIL", "SMS", "PUSH", "AUTO",
    ]  # fmt: skip
    assert operations.field_schema(send, "metadata")["type"] == "object"
    device = operations.by_key("device")
    assert operations.field_schema(device, "timeZone")["description"] == "IANA."
