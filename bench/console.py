"""The console's pages with a million messages, contacts and events, against a hundred.

The aims on a calm machine: Home within 150 ms, other pages within 120, and no page above 120 KB.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import quote

from bench.accepting import accept_in_process
from bench.scene import Scene

COUNT = int(os.environ.get("BENCH_MESSAGES", "1000000"))
DAYS = 30
FEW = 100
STATEMENTS = 40
"""No page may ask more often."""
LONGEST = 1.5
"""How many times as long a page may take with a million."""
LONGEST_SEARCH = 150
"""How many milliseconds the search may take with a million, whatever it took with a hundred."""
HOME_MS, PAGE_MS, PAGE_KB = 150, 120, 120
ROUNDS = 15


class Cost(NamedTuple):
    """What a page costs."""

    ms: float
    """The best of some rounds."""
    statements: int
    kb: float


# All rows of a number are related: its contact, message, content, delivery, attempt and events. Ids
# are UUIDv7 of its time. A tenth goes by SMS, a fiftieth failed, five are in manual review.
_AT = "(%(until)s::timestamptz - ({count} - i) * interval '{step} milliseconds')"
_ID = """(lpad(to_hex((extract(epoch FROM %(until)s::timestamptz) * 1000)::bigint
    - ({count} - i)::bigint * {step}), 12, '0')
    || '7000' || '{kind}' || lpad(to_hex(i), 15, '0'))::uuid"""
_CHANNEL = "CASE WHEN mod(i, 10) = 1 THEN 'SMS' ELSE 'EMAIL' END"
_STATUS = """CASE WHEN mod(i, 200000) = 11 THEN 'UNKNOWN' WHEN mod(i, 50) = 3 THEN 'FAILED'
  WHEN mod(i, 2) = 0 THEN 'DELIVERED' ELSE 'SENT' END"""
_ROWS = {
    "crm_contact": """(id, organization_id, first_name, last_name, email, phone, mobile, language,
  zone) SELECT {contact}, 'bench', 'F' || i, 'Family' || mod(i, 5000),
  'person' || i || '@people.example', '', '+1212' || lpad(i::text, 7, '0'), 'en_US', ''""",
    "messaging_message": """(id, organization_id, category, channels, strategy, template, test,
  created_at) SELECT {message}, 'bench', CASE WHEN mod(i, 3) = 0 THEN 'MARKETING' ELSE
  'TRANSACTIONAL' END, '{{EMAIL}}', 'FIRST_REACHABLE', CASE WHEN mod(i, 4) > 0 THEN 'note' END,
  false, {at}""",
    "messaging_messagecontent": """(id, organization_id, body, size) SELECT {message}, 'bench',
  '{{"content": {{"subject": "A note", "text": "Hello"}}}}', 48""",
    "messaging_delivery": """(id, organization_id, message_id, contact_id, position, category,
  priority, channels, channel, address, provider, status, reason, expires_at, fence, tries, test,
  updated_at) SELECT {delivery}, 'bench', {message}, {contact}::text, 0, 'TRANSACTIONAL', 1, '{{}}',
  {channel}, 'person' || i || '@people.example', 'simulator', {status},
  CASE WHEN mod(i, 50) = 3 THEN 'PROVIDER_ERROR' END, {at}, 1, 1, false, {at}""",
    "messaging_attempt": """(id, organization_id, message_id, delivery_id, fence, channel, provider,
  outcome, started_at, latency_ms) SELECT {attempt}, 'bench', {message}, {delivery}, 1, {channel},
  'simulator', CASE WHEN mod(i, 50) = 3 THEN 'Rejected' ELSE 'Accepted' END, {at}, mod(i, 400)""",
    "messaging_event": """(id, organization_id, message_id, delivery_id, type, at, channel,
  provider) SELECT {event}, 'bench', {message}, {delivery}, 'sent', {at}, {channel}, 'simulator'""",
}
_TYPED = {
    "nothing": "",
    "a letter": "f",
    "a name": "fam",
    "a rare name": "Family49",
    "two names": "f9 family49",
    "email": "person99",
    "a whole email": "person99@people.example",
    "number": "2120099",
    "end of a number": "4321",
    "a command": "pause",
    "nobody": "zzz",
}
"""What somebody types into the palette, by what it is."""
_KINDS = {"contact": "8", "message": "9", "delivery": "a", "attempt": "b", "event": "8"}


def console(scene: Scene) -> None:
    """Each page with a hundred messages, and with a million; and how often each asks."""
    accept_in_process(scene, FEW)
    _deliver()
    _count_minutes()
    few = _measure(scene)
    until = datetime.now(UTC) - timedelta(minutes=1)
    started = time.perf_counter()
    _fill(until)
    took = time.perf_counter() - started
    print(f"console: {COUNT:,} of each stored in {took:,.0f} s", flush=True)
    try:
        _count_minutes()
        many = _measure(scene)
    finally:
        _empty(scene, until)
    for name, before in few.items():
        print(_line(name, before, many[name]), flush=True)


def _line(name: str, before: Cost, after: Cost) -> str:
    ratio = after.ms / before.ms
    is_typing = name.startswith("⌘K")
    is_search = is_typing or name.startswith("contacts, ")  # with a hundred it finds fewer people
    limit = LONGEST_SEARCH if is_typing else HOME_MS if name == "home" else PAGE_MS
    is_ok = (
        (ratio <= LONGEST or is_search)
        and after.statements <= STATEMENTS
        and after.ms <= limit
        and after.kb <= PAGE_KB
    )
    note = (
        f"{before.ms:.1f} ms with {FEW}: {ratio:.2f} x, {after.statements} statements, "
        f"{after.kb:.0f} KB  {'ok' if is_ok else 'TOO MUCH'}"
    )
    return f"console, {name:<35} {after.ms:>10.1f} ms           {note}"


def _deliver() -> None:
    """Send what was accepted, by the simulator; half of it fails."""
    from messaging.delivery import claims, deliver
    from messaging.delivery.sending_process import SendingProcess
    from messaging.domain.channels import Channel
    from messaging.feedback import receipts
    from messaging.models import Delivery
    from rme.core.outbound import outbound_transport

    process = SendingProcess()
    while waiting := claims.ready(Channel.EMAIL):
        for priority, organization_id in claims.choose(waiting):
            window = claims.claim(organization_id, Channel.EMAIL, priority)
            deliver.deliver([window], outbound_transport(), process, receipts.apply)
    # Lists of failed ones are as long as with a million: a page shows fifty.
    half = Delivery.objects.order_by("-pk").values("pk")[: FEW // 2]
    Delivery.objects.filter(pk__in=half).update(status="FAILED", reason="PROVIDER_ERROR")


def _count_minutes() -> None:
    """Count what the home page shows, as the job does; what was counted before is forgotten."""
    from django.db import connection

    from messaging.models import CountedUntil, HourCount, MinuteCount
    from messaging.statistics import minutes
    from rme.core.db import clock

    names = ", ".join(each._meta.db_table for each in (CountedUntil, HourCount, MinuteCount))
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {names}")
    while minutes.count_slice(clock.now()):
        pass
    with connection.cursor() as cursor:
        cursor.execute(f"VACUUM ANALYZE {names}")


def _fill(until: datetime) -> None:
    """Store a million of each row by a statement a table."""
    from django.db import connection

    from messaging.models import PARTITIONED
    from rme.core.db import partitions

    tables = [model._meta.db_table for model in PARTITIONED]
    partitions.create_ahead(tables, now=until - timedelta(days=DAYS), ahead=2)
    step = DAYS * 86_400_000 // COUNT
    parts = {name: _ID.format(count=COUNT, step=step, kind=kind) for name, kind in _KINDS.items()}
    parts |= {"at": _AT.format(count=COUNT, step=step), "channel": _CHANNEL, "status": _STATUS}
    with connection.cursor() as cursor:
        for table, rows in _ROWS.items():
            text = f"INSERT INTO {table} {rows.format(**parts)} FROM generate_series(1, {COUNT}) i"
            cursor.execute(text, {"until": until})
        cursor.execute(f"VACUUM ANALYZE {', '.join(_ROWS)}")


def _measure(scene: Scene) -> dict[str, Cost]:
    """Return what each page costs."""
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext
    from django.urls import reverse

    from messaging.models import Delivery
    from rme.core.cache import TtlCache

    # The first one accepted: the same person and message, whatever came since.
    row = Delivery.objects.filter(contact_id__in=scene.contacts).order_by("pk").first()
    assert row is not None
    contacts = reverse("console:contacts", args=["bench"])
    page = {
        "search, by email": f"{reverse('search')}?organization=bench&q=p1@x.example",
        "search, by name": f"{reverse('search')}?organization=bench&q=F1",
        **{
            f"⌘K, {kind}": f"{reverse('search_results')}?organization=bench&q={quote(text)}"
            for kind, text in {**_TYPED, "part of an id": row.pk.hex[-12:]}.items()
        },
        "person": reverse("console:person", args=["bench", row.contact_id]),
        "messages": reverse("console:messages", args=["bench"]),
        "messages, failed": f"{reverse('console:messages', args=['bench'])}?status=FAILED",
        "messages, manual review": f"{reverse('console:messages', args=['bench'])}?status=HELD",
        "message": reverse("console:message", args=["bench", row.message_id]),
        "contacts": contacts,
        **{
            f"contacts, {kind}": f"{contacts}?person={quote(_TYPED[kind])}"
            for kind in ("a name", "end of a number", "nobody")
        },
        "suppressions": reverse("console:suppressions", args=["bench"]),
        "consent": reverse("console:consent", args=["bench"]),
        "templates": reverse("console:templates", args=["bench"]),
        "providers": reverse("console:providers", args=["bench"]),
        "requests": reverse("console:requests", args=["bench"]),
        "home": "/admin/",
    }
    costs = {}
    with _owner() as user:
        client = Client(headers={"host": "127.0.0.1"})
        client.force_login(user)

        def open_page(path: str) -> float:
            TtlCache.clear_all()  # as a process that has not shown it lately
            answer = client.get(path)
            assert answer.status_code in (200, 302)
            return len(answer.content) / 1000

        for name, path in page.items():
            open_page(path)
            with CaptureQueriesContext(connection) as captured:
                open_page(path)
            best = _best(lambda path=path: open_page(path))
            costs[name] = Cost(best, len(captured), open_page(path))
    return costs


def _best(call: Callable[[], object]) -> float:
    took = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        call()
        took.append(time.perf_counter() - started)
    return min(took) * 1000


@contextmanager
def _owner() -> Iterator["User"]:  # type: ignore[name-defined]  # noqa: F821 (Django is not up yet)
    """Make an owner of the organization while the block runs."""
    from rme.tenants.models import Membership, User

    user = User.objects.create_user("bench-owner", password=None, is_staff=True)
    Membership.objects.create(organization_id="bench", user=user, role=Membership.Role.OWNER)
    try:
        yield user
    finally:
        user.delete()


def _empty(scene: Scene, until: datetime) -> None:
    """Delete what was stored, and the months that were made for it."""
    from django.db import connection

    from messaging.models import PARTITIONED
    from rme.core.db import partitions

    scene.clear()
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM crm_contact WHERE organization_id = 'bench' AND NOT id = ANY(%s::uuid[])",
            [scene.contacts],
        )
    for month in partitions.past([model._meta.db_table for model in PARTITIONED], before=until):
        assert partitions.drop(month)
