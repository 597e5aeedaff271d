"""The least that sending can cost: claims by SKIP LOCKED, pipelined SMTP, one UPDATE of outcomes.

`python -m bench.reference.lean_worker PORT` sends by email what the lean web server has accepted,
for ever. No gates, no attempts, no events, no retries, no template engine, and the answer of the
mail server is only counted: a bound to come near to, not a service. If it dies, mails are lost.
"""

import os
import socket
import sys
import time

import orjson

BATCH = 500
CONNECTIONS = 10
IDLE_SECONDS = 0.005
LINE = "Grüezi – the quick brown fox jumps over the lazy dog while the band plays on. "

CLAIM = """
WITH picked AS MATERIALIZED (
  SELECT id FROM messaging_delivery
  WHERE status = 'ACCEPTED' AND channel = 'EMAIL' AND priority = 0 AND organization_id = 'bench'
  ORDER BY due_at LIMIT %s FOR UPDATE SKIP LOCKED
), claimed AS (
  UPDATE messaging_delivery d SET status = 'SENDING', updated_at = now() FROM picked p
  WHERE d.id = ANY(ARRAY[p.id]) RETURNING d.id, d.message_id, d.contact_id
)
SELECT json_agg(json_build_array(d.id, p.first_name, p.email, c.body))::text
FROM claimed d JOIN messaging_messagecontent c ON c.id = ANY(ARRAY[d.message_id])
JOIN crm_contact p ON p.id = d.contact_id::uuid
"""
RECORD = """
UPDATE messaging_delivery d SET status = 'SENT', due_at = NULL, updated_at = now()
FROM unnest(%s::uuid[]) done(id) WHERE d.id = ANY(ARRAY[done.id])
"""

BY_INDEX = """
SELECT set_config('enable_seqscan', 'off', false), set_config('enable_sort', 'off', false),
  set_config('plan_cache_mode', 'force_custom_plan', false)
"""
"""Without it, statistics of an empty table make a claim read and sort all that is ready."""


def compose(identifier: str, name: str, email: str, note: str) -> bytes:
    """Return a mail of the size of those that rme composes."""
    text = f"Dear {name},\r\n\r\n{note}\r\n\r\n{LINE * 5}Bench\r\n"
    return (
        f"From: Bench <note@bench.example>\r\nTo: {name} <{email}>\r\n"
        f"Subject: A note for {name}\r\n"
        f"Message-ID: <{identifier}@bench.example>\r\nMIME-Version: 1.0\r\n"
        f'Content-Type: multipart/alternative; boundary="=_b"\r\n\r\n'
        f"--=_b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n{text}\r\n"
        f"--=_b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>{text}</p>\r\n--=_b--\r\n"
    ).encode()


class Session:
    """A connection to the mail server: the envelope of a mail leaves with the mail before it."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.replies = self.socket.makefile("rb")
        self.read(1)
        self.socket.sendall(b"EHLO lean\r\n")
        self.read(1)

    def read(self, count: int) -> None:
        """Read so many replies; each must be positive."""
        while count:
            line = self.replies.readline()
            assert line[:1] in (b"2", b"3"), line
            count -= line[3:4] != b"-"

    def write(self, mail: bytes, recipient: str | None) -> None:
        """Write a mail, and the envelope of the next."""
        if recipient:
            mail += f"MAIL FROM:<note@bench.example>\r\nRCPT TO:<{recipient}>\r\nDATA\r\n".encode()
        self.socket.sendall(mail)


def send(sessions: list[Session], mails: list[tuple[str, bytes]]) -> None:
    """Send mails over the sessions in turns."""
    lines = [mails[place :: len(sessions)] for place in range(len(sessions))]
    for place in range(-1, len(lines[0])):
        for session, line in zip(sessions, lines, strict=True):
            mail = line[place][1] + b".\r\n" if 0 <= place < len(line) else b""
            following = line[place + 1][0] if place + 1 < len(line) else None
            if mail or following:
                session.write(mail, following)
        for session, line in zip(sessions, lines, strict=True):
            has_mail, has_next = 0 <= place < len(line), place + 1 < len(line)
            session.read(int(has_mail) + 3 * int(has_next))


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "rme.settings")
    import django

    django.setup()
    from django.db import connection

    sessions = [Session(int(sys.argv[1])) for _ in range(CONNECTIONS)]
    with connection.cursor() as cursor:
        cursor.execute(BY_INDEX)
        while True:
            cursor.execute(CLAIM, [BATCH])
            (found,) = cursor.fetchone()
            rows = orjson.loads(found or "[]")
            if not rows:
                time.sleep(IDLE_SECONDS)
                continue
            mails = [
                (email, compose(identifier, name, email, body["note"]))
                for identifier, name, email, body in rows
            ]
            send(sessions, mails)
            cursor.execute(RECORD, [[row[0] for row in rows]])


if __name__ == "__main__":
    main()
