"""Checks of sender domains by DNS: on demand, and of each once a day."""

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import dns.exception
import dns.resolver
from django.conf import settings
from django.db.models import F, Q
from dns.rdtypes.ANY.TXT import TXT

from messaging.models import SenderDomain
from messaging.policy import domain_records
from messaging.policy.domain_records import Texts
from rme.core.db import clock, locks
from rme.tenants import organizations

EVERY = timedelta(days=1)
BATCH = 20
"""The domains that are checked together."""
LOOKUP_SECONDS = 4.0
"""The most that a name is waited for, with all tries."""
THREADS = 16
PORT = 53


def check(rows: Sequence[SenderDomain]) -> None:
    """Look the records of domains up, and store what they say by one statement.

    No transaction is open meanwhile.
    """
    names = (domain_records.names(row.domain, row.dkim_selector) for row in rows)
    answers = look_up(set().union(*names))
    now = clock.now()
    for row in rows:
        results = domain_records.findings(row.domain, row.spf, row.dkim_selector, answers)
        row.findings = [each.as_json() for each in results]
        row.checked_at = now
    SenderDomain.objects.bulk_update(rows, ["findings", "checked_at"])


def check_one(organization_id: str, domain_id: int) -> Mapping[str, Any]:
    """Check a domain, and store the findings in its row; the result is empty.

    It waits for name servers that anybody may run: no web thread may call it
    (`rme.core.http.checks`).
    """
    row = SenderDomain.objects.get(pk=domain_id, organization_id=organization_id)
    check([row])
    return {}


def check_due() -> int:
    """Check a batch of those that were not checked for a day; return how many. One worker does."""
    with locks.alone("messaging.check_sender_domains") as has_lock:
        if not has_lock:
            return 0
        due = Q(checked_at=None) | Q(checked_at__lt=clock.now() - EVERY)
        rows = SenderDomain.objects.filter(due, organizations.served()).order_by(
            F("checked_at").asc(nulls_first=True), "pk"
        )
        batch = list(rows[:BATCH])
        if batch:
            check(batch)
        return len(batch)


def look_up(names: Collection[str]) -> Texts:
    """Return the TXT records of names, side by side, each within a time limit."""
    try:
        resolver = _resolver()
    except dns.exception.DNSException:  # this machine has no resolver
        return dict.fromkeys(names)
    ordered = sorted(names)
    with ThreadPoolExecutor(max_workers=THREADS) as threads:
        return dict(zip(ordered, threads.map(partial(_texts, resolver), ordered), strict=True))


def _resolver() -> dns.resolver.Resolver:
    """Return the resolver of `DNS_RESOLVER`, like 192.0.2.1:53; empty: this machine's."""
    server: str = settings.DNS_RESOLVER
    if not server:
        return dns.resolver.Resolver()
    host, _, port = server.rpartition(":") if server.count(":") == 1 else (server, "", "")
    resolver = dns.resolver.Resolver(configure=False)
    resolver.nameservers = [host.strip("[]")]
    resolver.port = int(port or PORT)
    return resolver


def _texts(resolver: dns.resolver.Resolver, name: str) -> list[str] | None:
    """Return the TXT records of a name; None without an answer."""
    try:
        answer = resolver.resolve(
            name, "TXT", lifetime=LOOKUP_SECONDS, search=False, raise_on_no_answer=False
        )
    except dns.resolver.NXDOMAIN:
        return []
    except (dns.exception.DNSException, OSError):
        return None
    return [
        b"".join(each.strings).decode("utf-8", "replace")
        for each in answer.rrset or ()
        if isinstance(each, TXT)
    ]
