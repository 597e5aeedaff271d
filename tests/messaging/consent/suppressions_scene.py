"""The calls for suppressions, as the tests make them."""

from messaging.models import Suppression
from rme.core.db.clock import iso
from tests.rest import error

UNKNOWN = error("NOT_FOUND", "This suppression doesn't exist.")
ADA = {"channel": "EMAIL", "address": "ada@example.com"}


def add(api, **fields):
    return api.call("POST", "/suppressions", {**ADA, **fields})


def add_many(api, *entries):
    return api.call("POST", "/suppressions", {"entries": list(entries)})


def listed(api, query=""):
    return api.call("GET", f"/suppressions{query}").json()


def lift(api, query):
    return api.call("DELETE", f"/suppressions{query}")


def row(org, **fields):
    return Suppression.objects.create(
        organization=org,
        **{"channel": "EMAIL", "address": "ada@example.com", "reason": "MANUAL", **fields},
    )


def shown(entry, **fields):
    """Write an entry's whole body."""
    body = {
        "id": str(entry.pk), "channel": "EMAIL", "address": "ada@example.com", "contactId": None,
        "reason": "MANUAL", "note": None, "source": "API", "createdAt": iso(entry.created_at),
        "expiresAt": None,
    }  # fmt: skip
    return {**body, **fields}


def entries(count):
    return [{"channel": "EMAIL", "address": f"p{i}@example.com"} for i in range(count)]
