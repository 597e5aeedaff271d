"""The calls of the API that a person composes in the console, and the fields of their bodies.

The fields come from the schemas that the OpenAPI description publishes and that calls are parsed
by: their kinds, choices, descriptions and examples.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from django.utils.translation import gettext_noop
from pydantic import TypeAdapter

from messaging.accept.requests import MESSAGE
from messaging.consent.entry_inputs import CONSENT
from messaging.consent.suppression_inputs import SUPPRESSION
from messaging.content.inputs import RENDER
from push.inputs import DEVICE

Json = dict[str, Any]
_STEP = re.compile(r"\[(\d+)\]|(\w+)")


@dataclass(frozen=True, slots=True)
class Operation:
    """A call of the API. `fields` are the paths of body fields, as errors name them."""

    key: str
    title: str
    name: str
    """As in the OpenAPI description, and so in the Python client."""
    method: str
    path: str
    """With its parameters in braces."""
    body: TypeAdapter[Any] | None = None
    fields: Sequence[str] = ()
    options: Mapping[str, bool] = field(default_factory=dict)
    """Query parameters, by their names in the query."""
    example: Json | None = None
    """Instead of the schema's."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Examples of the parameters of the path, by name."""
    in_list: str = ""
    """The field of the body that is a list of such bodies; empty: the body is sent as it is."""


_MESSAGE_FIELDS = (
    *("channel", "category", "to[0].contactId", "template.name", "template.language"),
    *("context.variables", "content.subject", "content.text", "content.html"),
    *("schedule.mode", "schedule.at", "schedule.time", "metadata"),
)
OPERATIONS = (
    Operation(
        "send", gettext_noop("Send a message"),
        "send_message", "POST", "/rme/v1/messages", MESSAGE,
        _MESSAGE_FIELDS,
    ),
    Operation(
        "dry-run", gettext_noop("Try a message without sending (dry run)"),
        "send_message", "POST",
        "/rme/v1/messages", MESSAGE, _MESSAGE_FIELDS, options={"dryRun": True},
    ),
    Operation(
        "bulk", gettext_noop("Send up to 500 messages"),
        "send_messages", "POST", "/rme/v1/messages/bulk",
        MESSAGE, _MESSAGE_FIELDS, in_list="messages",
    ),
    Operation(
        "message", gettext_noop("Read a message"),
        "get_message", "GET", "/rme/v1/messages/{message_id}",
        parameters={"message_id": "0199f0a2-7d2e-7c31-9a55-3d9f0b7e6a10"},
    ),
    Operation(
        "consent", gettext_noop("Record consent"),
        "record_consent", "POST", "/rme/v1/consent", CONSENT,
        ("contactId", "channel", "category", "status", "source", "evidence", "occurredAt"),
    ),
    Operation(
        "suppression", gettext_noop("Suppress an address"),
        "add_suppressions", "POST", "/rme/v1/suppressions",
        SUPPRESSION, ("channel", "address", "contactId", "reason", "note", "expiresAt"),
        example={"channel": "EMAIL", "address": "ada@example.com"},
    ),
    Operation(
        "device", gettext_noop("Register a device"),
        "register_devices", "POST", "/rme/v1/devices", DEVICE,
        ("contactId", "platform", "token", "app", "environment", "locale", "timeZone", "name"),
    ),
    Operation(
        "render", gettext_noop("Preview a template"),
        "render_template", "POST",
        "/rme/v1/templates/{name}/render", RENDER,
        ("language", "channel", "version", "contactId", "variables"),
        parameters={"name": "welcome"},
    ),
)  # fmt: skip


@cache
def schema_of(operation_key: str) -> Json:
    """Return the JSON schema of an operation's body."""
    body = by_key(operation_key).body
    return body.json_schema() if body else {}


def by_key(key: str) -> Operation:
    """Return an operation; the first one for an unknown key."""
    return next((each for each in OPERATIONS if each.key == key), OPERATIONS[0])


def steps_of(path: str) -> list[str | int]:
    """Return the steps of a path like `to[0].contactId`."""
    return [int(index) if index else name for index, name in _STEP.findall(path)]


def field_schema(operation: Operation, path: str) -> Json:
    """Return the schema of a field, without null, with its description."""
    root = schema_of(operation.key)
    schema = root
    for step in steps_of(path):
        inner = schema["items"] if isinstance(step, int) else _properties(schema, root)[step]
        schema = _plain(inner, root)
    return schema


def _properties(schema: Json, root: Json) -> Json:
    """Return the properties of an object, or those of all the objects that it may be."""
    if "properties" in schema:
        return dict(schema["properties"])
    merged: Json = {}
    kinds: list[Json] = schema.get("oneOf") or schema.get("anyOf") or []
    for kind in kinds:
        for name, inner in _plain(kind, root).get("properties", {}).items():
            values = [*choices_of(merged.get(name, {})), *choices_of(inner)]
            merged[name] = {**inner, "enum": list(dict.fromkeys(values))} if values else inner
    return merged


def _plain(schema: Json, root: Json) -> Json:
    """Return a schema with its reference followed and its null left out."""
    described: Json = {name: schema[name] for name in ("description", "default") if name in schema}
    if reference := schema.get("$ref"):
        schema = root["$defs"][reference.rpartition("/")[2]]
    choices = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(choices) == 1:
        schema = _plain(choices[0], root)
    return {**schema, **described}


def choices_of(schema: Json) -> list[str]:
    """Return the values that a field allows; none: any."""
    schemas = [schema, *schema.get("anyOf", ()), *schema.get("oneOf", ())]
    values: list[str] = next((each["enum"] for each in schemas if "enum" in each), [])
    return values or ([schema["const"]] if "const" in schema else [])


def example_of(operation: Operation) -> Json:
    """Return a body to begin with."""
    examples: list[Json] = schema_of(operation.key).get("examples", [])
    return operation.example or (examples[0] if examples else {})


def value_at(body: Json, path: str) -> Any:
    """Return a value of a body by its path; None if it is not there."""
    value: Any = body
    for step in steps_of(path):
        try:
            value = value[step]
        except (KeyError, IndexError):
            return None
    return value


def put(body: Json, path: str, value: object) -> None:
    """Put a value into a body, with the objects and lists around it."""
    *outer, last = steps = steps_of(path)
    container: Any = body
    for step, following in zip(outer, steps[1:], strict=True):
        empty: Any = [] if isinstance(following, int) else {}
        if isinstance(step, int):
            container.extend([empty] * (step + 1 - len(container)))
            container = container[step]
        else:
            container = container.setdefault(step, empty)
    container[last] = value
