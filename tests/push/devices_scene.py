"""The calls for devices, as the tests make them."""

from rme.core.db.clock import iso
from tests.push.subscriptions import Browser

HEX = "0aB1" * 16
NOBODY = "01a1fb37-a4a4-7470-9fc2-6927566e64b5"
BROWSER = Browser()


def register(api, body):
    return api.call("POST", "/devices", body)


def android(person, token="token-1", **fields):
    return {"contactId": str(person.pk), "platform": "ANDROID", "token": token, **fields}


def shown(row, **fields):
    return {
        "deviceId": str(row.pk),
        "contactId": row.contact_id or None,
        "platform": row.platform,
        "active": row.active,
        "registeredAt": iso(row.registered_at),
        **fields,
    }


def history(row):
    return [entry["what"] for entry in row.history]
