"""An account whose provider keeps a session with an SMSC on this machine."""

import orjson

from messaging.models import ProviderAccount
from rme.core.cache import TtlCache


def account(org, smsc, **fields):
    credentials = {"host": "127.0.0.1", "port": smsc.port, "system_id": "esme", "timeout": 5}
    made = ProviderAccount.objects.create(
        organization=org,
        name=fields.pop("name", "smsc"),
        kind="smpp",
        channel="SMS",
        credentials=orjson.dumps({**credentials, **fields}).decode(),
    )
    TtlCache.clear_all()
    return made
