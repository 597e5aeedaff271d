"""A call of the API as curl, Python and TypeScript, with placeholders for what is secret."""

import pprint
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode

import orjson
from django.conf import settings

from messaging.console.developers.operations import Json, Operation

WIDTH = 88


@dataclass(frozen=True, slots=True)
class Composed:
    """A call with its values. The body is None for a call without one."""

    operation: Operation
    parameters: Mapping[str, str]
    body: Json | None

    @property
    def sent_body(self) -> Json | None:
        """Return the body as it is sent: for many, in their list."""
        if self.body is None or not self.operation.in_list:
            return self.body
        return {self.operation.in_list: [self.body]}


def curl(call: Composed) -> str:
    """Return a command line; `$TOKEN` holds an access token."""
    operation = call.operation
    path = operation.path.format(**{k: quote(v, safe="") for k, v in call.parameters.items()})
    options = {name: str(value).lower() for name, value in operation.options.items()}
    query = f"?{urlencode(options)}" if options else ""
    lines = [f"curl -X {operation.method} {shlex.quote(settings.BASE_URL + path + query)}"]
    lines.append('-H "Authorization: Bearer $TOKEN"')
    if call.sent_body is not None:
        lines.append('-H "Content-Type: application/json"')
        lines.append(f"-d {shlex.quote(_json(call.sent_body))}")
    return " \\\n  ".join(lines)


def python(call: Composed) -> str:
    """Return a program that uses the package `rme-messaging-client`."""
    parts = [repr(value) for value in call.parameters.values()]
    if call.sent_body is not None:
        parts.append(pprint.pformat(call.sent_body, width=WIDTH, sort_dicts=False))
    parts += [f"{_snake(name)}={value}" for name, value in call.operation.options.items()]
    arguments = ",\n".join(parts).replace("\n", "\n        ")
    return (
        "from rme_client import Client\n\n"
        f'with Client("{settings.BASE_URL}", client_id="…", client_secret="…") as rme:\n'
        f"    answer = rme.{call.operation.name}(\n        {arguments},\n    )\n"
        "    print(answer)\n"
    )


def typescript(call: Composed) -> str:
    """Return a program that uses the package `@rme-messaging/client`, which is JavaScript too."""
    parts = [orjson.dumps(value).decode() for value in call.parameters.values()]
    if call.sent_body is not None:
        parts.append(_json(call.sent_body))
    if call.operation.options:
        parts.append(_json(dict(call.operation.options)))
    return (
        'import { Client } from "@rme-messaging/client";\n\n'
        "const rme = new Client({\n"
        f'  baseUrl: "{settings.BASE_URL}",\n  clientId: "…",\n  clientSecret: "…",\n}});\n'
        f"const answer = await rme.{_camel(call.operation.name)}({', '.join(parts)});\n"
        "console.log(answer);\n"
    )


def _json(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _snake(name: str) -> str:
    return re.sub(r"([A-Z])", r"_\1", name).lower()


def _camel(name: str) -> str:
    first, *following = name.split("_")
    return first + "".join(word.title() for word in following)
