"""Confirm calls a second: with a thousand contacts, with a million, and beside an empty view that
stands behind the same key check.

All stand up at once, each on a database of its own, and are measured in turns of a second or less,
so that what else the machine does hits all alike. The middle of a stack's turns is its rate.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from statistics import median
from urllib.parse import urlsplit

import psycopg

from bench import load
from bench.scene import Scene, free_port, processes, wait_for_port, web

FEW = 1000
MANY = int(os.environ.get("BENCH_CONTACTS", "1000000"))
ASKED = 1000
"""Different look-ups of a stack, spread over all its contacts."""
SECONDS = float(os.environ.get("BENCH_SECONDS", "6"))
TURNS = 7
EMPTY = "bench.reference.bot_wsgi:application"
OURS = "rme.asgi:application"

_FILL = """
INSERT INTO crm_contact (id, organization_id, first_name, last_name, email, phone, mobile, language,
  zone)
SELECT gen_random_uuid(), 'bench', 'First', 'Last' || i, 'Q' || i || '@Crowd.Example', '',
  '+1' || (2000000000 + i), '', ''
FROM generate_series(1, %s::int) i
"""


@dataclass
class Stack:
    """A web server and what it is asked for; `rates` are the answers a second of its turns."""

    name: str
    port: int
    asked: list[bytes]
    rates: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return median(self.rates)

    def turn(self, seconds: float) -> float:
        """Ask for some seconds."""
        measured = load.run(self.port, self.asked, connections=8, seconds=seconds)
        assert set(measured.statuses) == {200}, measured.statuses
        return measured.rate


@contextmanager
def copies(*names: str) -> Iterator[list[str]]:
    """Copy the database while the block runs; gives the addresses of the copies."""
    from django.db import connection

    connection.close()
    connection.close_pool()  # a database that is copied must be nobody's
    own = urlsplit(os.environ["DATABASE_URL"])
    drop = [f"DROP DATABASE IF EXISTS {name} WITH (FORCE)" for name in names]
    copy = [f'CREATE DATABASE {name} TEMPLATE "{own.path.strip("/")}"' for name in names]
    _run(own._replace(path="/postgres").geturl(), [*drop, *copy])
    try:
        yield [own._replace(path=f"/{name}").geturl() for name in names]
    finally:
        _run(own._replace(path="/postgres").geturl(), drop)


def _run(address: str, statements: Sequence[str]) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)  # type: ignore[arg-type]


def fill(address: str, count: int) -> None:
    """Store contacts by one statement, and let the planner know them."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(_FILL, [count])
        connection.execute("VACUUM ANALYZE crm_contact")


def look_ups(kind: str, count: int, key: str, port: int) -> list[bytes]:
    """Write look-ups as they go over the wire."""
    head = f"HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX-API-Key: {key}\r\n\r\n"
    numbers = range(1, count + 1, max(1, count // ASKED))
    what = {
        "email": lambda i: f"action=Confirm_Contact&email=q{i}@crowd.example",
        "phone": lambda i: f"action=Confirm_Contact_Phone&phone=%2B1{2_000_000_000 + i}",
    }[kind]
    return [f"GET /bot/api.php?org=bench&{what(i)} {head}".encode() for i in numbers]


def bot(scene: Scene) -> None:
    """Look contacts up by email and by phone."""
    from rme.tenants.models import Organization
    from rme.tenants.oauth import api_keys

    _, key = api_keys.issue(Organization.objects.get(pk="bench"), "bench")
    empty, few, many = (free_port() for _ in range(3))
    with copies("bench_few", "bench_many") as (small, large), ExitStack() as running:
        fill(small, FEW)
        fill(large, MANY)
        running.enter_context(processes([web(OURS, few)], DATABASE_URL=small))
        commands = [web(EMPTY, empty), web(OURS, many)]
        running.enter_context(processes(commands, DATABASE_URL=large))
        stacks = [
            Stack("an empty view behind the key check", empty, look_ups("email", MANY, key, empty)),
            Stack(f"confirm by email, {FEW:,}", few, look_ups("email", FEW, key, few)),
            Stack(f"confirm by email, {MANY:,}", many, look_ups("email", MANY, key, many)),
            Stack(f"confirm by phone, {FEW:,}", few, look_ups("phone", FEW, key, few)),
            Stack(f"confirm by phone, {MANY:,}", many, look_ups("phone", MANY, key, many)),
        ]
        measure(stacks)
    print_rates(*stacks)


def measure(stacks: Sequence[Stack]) -> None:
    """Return each stack its turns, after one that does not count; who begins changes."""
    for stack in stacks:
        wait_for_port(stack.port)
        stack.turn(1.5)
    for turn in range(TURNS):
        first = turn % len(stacks)
        for stack in (*stacks[first:], *stacks[:first]):
            stack.rates.append(stack.turn(SECONDS / TURNS))


def print_rates(empty: Stack, *others: Stack) -> None:
    """Print the rates, and the promised ratios: 35 % of the empty view, and 1.2 times as long."""
    _say(empty, "")
    for few, many in zip(others[::2], others[1::2], strict=True):
        _say(few, f"{few.rate / empty.rate:.0%} of empty")
        took = f"{few.rate / many.rate:.2f} x as long as with {FEW:,} (at most 1.2)"
        _say(many, f"{many.rate / empty.rate:.0%} of empty (at least 35%), {took}")


def _say(stack: Stack, note: str) -> None:
    spread = f"{min(stack.rates):,.0f}–{max(stack.rates):,.0f}"
    print(f"bot: {stack.name:<39} {stack.rate:>8,.0f} calls/s ({spread}) {note}", flush=True)
