"""What one organization's costly calls take from another's sends, and from `/livez`."""

import asyncio
import json
import multiprocessing
import statistics
import time
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from multiprocessing.connection import Connection
from typing import Any
from urllib.parse import urlencode

from bench import load
from bench.scene import Scene, free_port, processes, wait_for_port, web

ATTACKER = "bench-attacker"
CONNECTIONS = 40
SECONDS = 8.0
WARM_UP_SECONDS = 2.0
PAUSE_SECONDS = 0.02
"""Between two calls of the other organization."""
SLOW_BYTES = 100_000
"""Bytes per second that a slow reader takes."""
CONTACTS = 60_000
LIMIT = 3.0
"""How many times as long a call may take during an attack."""

PATTERN = {"properties": {"a": {"type": "string", "pattern": "[ab]*a[ab]{0,9000}[^ab]"}}}
NESTED = {
    "$ref": "#/$defs/d0",
    "$defs": {
        **{f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(30)},
        "d30": {"required": ["never"]},
    },
}
_STYLES = "".join(f".c{n} div {{ color: #0000{n % 100:02} }} " for n in range(300))
_BODY = "<mj-section><mj-column><mj-text>Hello {{ a }}</mj-text></mj-column></mj-section>" * 80
MJML = (
    f'<mjml><mj-head><mj-style inline="inline">{_STYLES}</mj-style></mj-head>'
    f"<mj-body>{_BODY}</mj-body></mjml>"
)


def _loops(count: int) -> str:
    """Return a template that computes for about 0.2 ms a loop."""
    return (
        "{% assign t = 'abcabc' %}{% for i in (1..13) %}{% assign t = t | append: t %}{% endfor %}"
        f"{{% for i in (1..{count}) %}}"
        "{% assign u = t | replace: 'a', 'b' | split: 'B' | join: 'x' %}{% endfor %}done"
    )


ENDLESS = _loops(9000)
COSTLY = _loops(400)
"""It renders, in about half of the CPU time that a template may take."""
LONG = "{% if a.b == 'c' %}{{ d | upcase | append: 'e' }}{% endif %}" * 6000


@dataclass(frozen=True)
class Attack:
    """Calls that an organization makes at once, again and again."""

    name: str
    request: bytes
    connections: int = CONNECTIONS
    is_slow: bool = False


def attacks(scene: Scene) -> None:
    """Sends of an organization while another one makes costly calls: p50, p99, and `/livez`."""
    port = free_port()
    with processes([web("rme.asgi:application", port)]):
        wait_for_port(port)
        with _Tarpit() as tarpit:
            for attack in _attacks(port, tarpit.port):
                _measure(scene, port, attack)


def _measure(scene: Scene, port: int, attack: Attack) -> None:
    _forget_limits()
    usual = asyncio.run(_calls(scene, port, SECONDS))
    spawning = multiprocessing.get_context("spawn")
    ours, theirs = spawning.Pipe()
    attacker = spawning.Process(target=_attack, args=(port, attack, theirs))
    attacker.start()
    try:
        ours.recv()
        time.sleep(WARM_UP_SECONDS)
        under = asyncio.run(_calls(scene, port, SECONDS))
        ours.send(None)
        statuses = ours.recv()
    finally:
        attacker.kill()
        attacker.join()
    shown = ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items()))
    print(f"{attack.name}, {attack.connections} at once ({shown or 'none ended'})", flush=True)
    for name, before in usual.items():
        after = under[name]
        verdict = "ok" if after <= LIMIT * before else "TOO MUCH"
        print(
            f"  {name:<12} {before:>8.1f} -> {after:>8.1f} ms  {after / before:>5.1f} x  {verdict}",
            flush=True,
        )


async def _calls(scene: Scene, port: int, seconds: float) -> dict[str, float]:
    """Make calls of the organization `bench`, one after the other; return how long they took."""
    body = json.dumps(scene.body(0)).encode()
    send = load.request_bytes("/rme/v1/messages", body, scene.token, port=port)
    livez = f"GET /livez HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
    until = time.perf_counter() + seconds
    sends, probes = await asyncio.gather(
        _repeat(port, send, b"202", until), _repeat(port, livez, b"200", until)
    )
    return {
        "send p50": statistics.median(sends),
        "send p99": statistics.quantiles(sends, n=100)[-1],
        "/livez p99": statistics.quantiles(probes, n=100)[-1],
    }


async def _repeat(port: int, request: bytes, status: bytes, until: float) -> list[float]:
    """Return the milliseconds of each call over a kept connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    times = []
    while (started := time.perf_counter()) < until:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head[9:12] == status, head
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        times.append((time.perf_counter() - started) * 1e3)
        await asyncio.sleep(PAUSE_SECONDS)
    writer.close()
    return times


# --- the attacker's process ---------------------------------------------------------------------
def _attack(port: int, attack: Attack, parent: Connection) -> None:
    statuses: Counter[int] = Counter()

    async def main() -> None:
        callers = [
            asyncio.create_task(_call_again(port, attack, statuses))
            for _ in range(attack.connections)
        ]
        parent.send(None)
        await asyncio.to_thread(parent.recv)
        parent.send(dict(statuses))
        for caller in callers:
            caller.cancel()

    asyncio.run(main())


async def _call_again(port: int, attack: Attack, statuses: Counter[int]) -> None:
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**14)
        with suppress(OSError, asyncio.IncompleteReadError):
            writer.write(attack.request)
            head = await reader.readuntil(b"\r\n\r\n")
            statuses[int(head[9:12])] += 1
            while await reader.read(SLOW_BYTES // 10):
                if attack.is_slow:
                    await asyncio.sleep(0.1)
        writer.close()
        await asyncio.sleep(0.05)  # a refusal is answered at once


class _Tarpit:
    """A server that accepts connections and says nothing."""

    def __enter__(self) -> "_Tarpit":
        import socket

        self._socket = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = int(self._socket.getsockname()[1])
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


# --- the attacker's organization ----------------------------------------------------------------
def _forget_limits() -> None:
    from rme.core.redis.connection import redis_client

    redis_client().flushdb()


def _attacks(port: int, tarpit: int) -> Sequence[Attack]:
    """Fill the attacker's organization; return its attacks."""
    from django.contrib.auth.models import Group
    from django.test import Client
    from django.urls import reverse

    from messaging.content import templates
    from messaging.models import ProviderAccount, SenderDomain, Template, TemplateVersion
    from rme.crm.models import Contact
    from rme.tenants.models import Membership, Organization, User
    from rme.tenants.oauth import applications

    Organization.objects.filter(pk=ATTACKER).delete()
    User.objects.filter(username__startswith=ATTACKER).delete()
    org = Organization.objects.create(
        id=ATTACKER, name="A", simulator=True, calls_per_second=1_000_000, calls_per_day=10**9
    )
    SenderDomain.objects.create(organization=org, domain="a.example", is_default=True)
    people = [
        Contact(organization=org, first_name=f"F{i}", last_name="L", email=f"p{i}@x.example")
        for i in range(CONTACTS)
    ]
    person = str(Contact.objects.bulk_create(people, batch_size=5000)[0].pk)
    account = ProviderAccount.objects.create(
        organization=org,
        name="tarpit",
        kind="smtp",
        channel="EMAIL",
        credentials=json.dumps({"host": "127.0.0.1", "port": tarpit, "security": "NONE"}),
    )

    def template(name: str, **texts: object) -> None:
        row = Template.objects.create(
            organization=org,
            name=name,
            language="en_US",
            channel="EMAIL",
            category="TRANSACTIONAL",
        )
        schema = texts.pop("variables", {})
        version = templates.add_draft(row, texts)
        templates.activate_many([version], in_worker=True)
        # As stored by a release that did not bound schemas.
        TemplateVersion.objects.filter(pk=version.pk).update(variables=schema)

    template("pattern", subject="x", text="{{ a }}", variables=PATTERN)
    template("nested", subject="x", text="{{ a }}", variables=NESTED)
    template("endless", subject="x", text=ENDLESS)
    template("costly", subject="x", text=COSTLY)
    template("long", subject="x", text=LONG)
    template("mjml", subject="x", text="x")

    user = User.objects.create(username=ATTACKER)
    user.groups.add(Group.objects.get(name="MSG_Integration_User"))
    application, secret = applications.create_application(org, "attacker", user)
    client = Client(headers={"host": f"127.0.0.1:{port}"})
    token = client.post(
        "/services/oauth2/token",
        f"grant_type=client_credentials&client_id={application.client_id}&client_secret={secret}",
        "application/x-www-form-urlencoded",
    ).json()["access_token"]
    owner = User.objects.create_user(
        f"{ATTACKER}-owner", "o@a.example", "correct horse battery", is_staff=True
    )
    Membership.objects.create(organization=org, user=owner, role=Membership.Role.OWNER)
    client.force_login(owner)
    client.get(f"/admin/console/{ATTACKER}/")
    csrf = "c" * 32
    cookies = "; ".join(f"{name}={each.value}" for name, each in client.cookies.items())
    cookies += f"; csrftoken={csrf}"

    def head(path: str, kind: str, length: int, credential: str) -> bytes:
        return (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n"
            f"Content-Type: {kind}\r\nContent-Length: {length}\r\n{credential}\r\n\r\n"
        ).encode()

    def call(path: str, body: Mapping[str, Any]) -> bytes:
        text = json.dumps(body).encode()
        credential = f"Authorization: Bearer {token}"
        return head(f"/rme/v1{path}", "application/json", len(text), credential) + text

    def message(name: str, variables: Mapping[str, object]) -> dict[str, Any]:
        return {
            "channel": "EMAIL",
            "category": "TRANSACTIONAL",
            "to": [{"contactId": person}],
            "template": {"name": name, "language": "en_US"},
            "context": {"variables": variables},
        }

    def form(path: str, fields: Mapping[str, object]) -> bytes:
        body = urlencode({**fields, "csrfmiddlewaretoken": csrf}).encode()
        kind = "application/x-www-form-urlencoded"
        return head(path, kind, len(body), f"Cookie: {cookies}") + body

    def upload(path: str, file: bytes) -> bytes:
        parts = (
            f'--x\r\nContent-Disposition: form-data; name="csrfmiddlewaretoken"\r\n\r\n{csrf}\r\n'
            '--x\r\nContent-Disposition: form-data; name="file"; filename="t.zip"\r\n'
            "Content-Type: application/zip\r\n\r\n"
        ).encode()
        body = parts + file + b"\r\n--x--\r\n"
        return head(path, "multipart/form-data; boundary=x", len(body), f"Cookie: {cookies}") + body

    def page(name: str, *args: object) -> str:
        return reverse(f"console:{name}", args=[ATTACKER, *args])

    draft = {
        "language": "en_US", "channel": "EMAIL", "version": 1, "revision": 1, "subject": "x",
        "html": "", "text": "", "mjml": MJML,
    }  # fmt: skip
    slow_text = {"a": "ab" * 30_000}
    bulk = {"messages": [message("nested", {"a": "x"})] * 60}
    export = form(reverse("admin:crm_contact_export"), {"organization": ATTACKER})
    return [
        Attack("B1: a pattern", call("/messages", message("pattern", slow_text))),
        Attack("B2: nested references", call("/messages", message("nested", {"a": "x"}))),
        Attack("B2: a bulk of 60 such items", call("/messages/bulk", bulk)),
        Attack("B3: slow readers of an export", export, is_slow=True),
        Attack("B3: MJML previews", form(page("template_preview", "mjml"), draft), 12),
        Attack("B3: a zip of 8 MJML files", upload(page("template_import"), _archive()), 4),
        Attack("B3: render", call("/templates/costly/render", {"channel": "EMAIL"}), 24),
        Attack("B3: dry runs", call("/messages?dryRun=true", message("endless", {}))),
        Attack("B3: dry runs of a long text", call("/messages?dryRun=true", message("long", {}))),
        Attack("B3: checks", form(page("provider", account.pk), {"do": "check"}), 12),
    ]


def _archive() -> bytes:
    """Return a zip of eight templates of MJML."""
    from messaging.content.files import texts
    from messaging.models import Template, TemplateVersion

    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(8):
            template = Template(
                name=f"mail{number}", language="en_US", channel="EMAIL", category="TRANSACTIONAL"
            )
            version = TemplateVersion(template=template, version=1, subject="x", mjml=MJML)
            path, content = texts.write(version)
            archive.writestr(path, content)
    return file.getvalue()
