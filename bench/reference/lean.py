"""The least that accepting can cost: a schema, a cached token, one COPY a table, one commit.

No gates, no idempotency, no template, no route: a bound to come near to, not a service.
"""

import hashlib
from datetime import UTC, datetime, timedelta

import orjson
from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from oauth2_provider.models import AccessToken

from messaging.accept.requests import MESSAGE, MessageInput
from rme.core import ids

_organizations: dict[str, str] = {}

COLUMNS = {
    "messaging_message": "id, organization_id, application_id, category, channels, strategy, "
    "template, language, test, created_at",
    "messaging_messagecontent": "id, organization_id, body",
    "messaging_delivery": "id, organization_id, message_id, contact_id, position, category, "
    "priority, channels, channel, address, status, expires_at, fence, tries, test, updated_at, "
    "due_at",
    "messaging_event": "id, organization_id, message_id, delivery_id, type, at",
}


def organization_of(request: HttpRequest) -> str:
    token = request.headers["Authorization"].removeprefix("Bearer ")
    if token not in _organizations:
        checksum = hashlib.sha256(token.encode()).hexdigest()
        row = AccessToken.objects.select_related("application").get(token_checksum=checksum)
        _organizations[token] = row.application.organization_id
    return _organizations[token]


def store(organization: str, items: list[MessageInput], status: str = "BLOCKED") -> list[str]:
    """Store messages; only `lean_worker` takes those that are ACCEPTED."""
    now = datetime.now(UTC).isoformat()
    later = (datetime.now(UTC) + timedelta(hours=24)).isoformat()
    due = now if status == "ACCEPTED" else "\\N"
    lines: dict[str, list[str]] = {table: [] for table in COLUMNS}
    made = []
    for item in items:
        message, delivery = ids.new_text_id(), ids.new_text_id()
        made.append(message)
        variables = item.context.variables if item.context else {}
        body = orjson.dumps(variables).decode().replace("\\", "\\\\")
        template = item.template
        assert template is not None
        values = {
            "messaging_message": f"{message}\t{organization}\t1\t{item.category}\t{{EMAIL}}\t"
            f"FIRST_REACHABLE\t{template.name}\t{template.language}\tf\t{now}\n",
            "messaging_messagecontent": f"{message}\t{organization}\t{body}\n",
            "messaging_delivery": f"{delivery}\t{organization}\t{message}\t"
            f"{item.to[0].contact_id}\t0\t{item.category}\t0\t{{}}\tEMAIL\ta@b.example\t{status}\t"
            f"{later}\t0\t0\tf\t{now}\t{due}\n",
            "messaging_event": f"{ids.new_text_id()}\t{organization}\t{message}\t{delivery}\t"
            f"accepted\t{now}\n",
        }
        for table, line in values.items():
            lines[table].append(line)
    with transaction.atomic(), connection.cursor() as cursor:
        for table, columns in COLUMNS.items():
            with cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
                copy.write("".join(lines[table]))
    return made


def answer(body: object) -> HttpResponse:
    return HttpResponse(orjson.dumps(body), status=202, content_type="application/json")


@csrf_exempt
def messages(request: HttpRequest) -> HttpResponse:
    item = MESSAGE.validate_python(orjson.loads(request.body))
    (made,) = store(organization_of(request), [item])
    return answer({"messageId": made, "status": "ACCEPTED"})


@csrf_exempt
def bulk(request: HttpRequest, status: str = "BLOCKED") -> HttpResponse:
    items = [MESSAGE.validate_python(item) for item in orjson.loads(request.body)["messages"]]
    return answer({"accepted": len(store(organization_of(request), items, status))})
