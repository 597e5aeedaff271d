"""Confirm calls a second: with a thousand contacts, with a million, and beside an empty view that
stands behind the same key check.
"""

from typing import Any

from bench import load
from bench.scene import Scene, free_port, processes, wait_for_port, web

COUNT = 1_000_000
SECONDS = 6.0
EMPTY = "bench.reference.bot_wsgi:application"
OURS = "rme.wsgi:application"

_FILL = """
INSERT INTO crm_contact (id, organization_id, first_name, last_name, email, phone, mobile, language,
  zone)
SELECT gen_random_uuid(), 'bench', 'First', 'Last' || i, 'Q' || i || '@Crowd.Example', '',
  '+1' || (2000000000 + i), '', ''
FROM generate_series(%(first)s::int, %(last)s::int) i
"""


def fill(first: int, last: int) -> None:
    """Store contacts by one statement, and let the planner know them."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(_FILL, {"first": first, "last": last})
        cursor.execute("VACUUM ANALYZE crm_contact")


def requests(action: str, values: list[str], key: str, port: int) -> list[bytes]:
    """Write look-ups as they go over the wire."""
    head = f"HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX-API-Key: {key}\r\n\r\n"
    return [
        f"GET /bot/api.php?org=bench&action={action}&{value} {head}".encode() for value in values
    ]


def rate(application: str, action: str, values: list[str], key: str) -> float:
    """Give the answers a second of one stack."""
    port = free_port()
    with processes([web(application, port)]):
        wait_for_port(port)
        asked = requests(action, values, key, port)
        load.run(port, asked, connections=8, seconds=1.5)
        measured = load.run(port, asked, connections=8, seconds=SECONDS)
        assert set(measured.statuses) == {200}, measured.statuses
    return measured.rate


def bot(scene: Scene) -> None:
    """Look contacts up by email and by phone."""
    from django.db import connection

    from rme.tenants import api_keys
    from rme.tenants.models import Organization

    _, key = api_keys.issue(Organization.objects.get(pk="bench"), "bench")
    emails = [f"email=q{i}@crowd.example" for i in range(1, 1000)]
    phones = [f"phone=%2B1{2_000_000_000 + i}" for i in range(1, 1000)]
    try:
        fill(1, 1000)
        few = rate(OURS, "Confirm_Contact", emails, key)
        fill(1001, COUNT)
        empty = rate(EMPTY, "Confirm_Contact", emails, key)
        spread = [f"email=q{i}@crowd.example" for i in range(1, COUNT, COUNT // 1000)]
        many = rate(OURS, "Confirm_Contact", spread, key)
        by_phone = rate(OURS, "Confirm_Contact_Phone", phones, key)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM crm_contact WHERE email LIKE '%%@Crowd.Example'")
            cursor.execute("VACUUM crm_contact")
    _say("bot: an empty view behind the key check", empty)
    _say("bot: confirm, a thousand contacts", few)
    note = f"{many / empty:.0%} of empty, {few / many:.2f} x as long as a thousand"
    _say("bot: confirm, a million contacts", many, note)
    _say("bot: confirm by phone, a million", by_phone, f"{by_phone / empty:.0%} of empty")


def _say(what: str, value: float, note: Any = "") -> None:
    print(f"{what:<44} {value:>10,.0f} {'calls/s':<12} {note}", flush=True)
