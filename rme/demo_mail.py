"""A real mail server for the demo organization, where `SMTP_URL` names one."""

from urllib.parse import unquote, urlsplit

import orjson

from messaging.models import ProviderAccount
from messaging.providers.simulator import Simulator
from messaging.providers.smtp import Smtp

SECURITY = {"smtp": "STARTTLS", "smtps": "TLS", "smtp+plain": "NONE"}


def use(url: str, organization_id: str) -> None:
    """Let the demo organization send its email by a server.

    `smtp://user:password@host:587` (STARTTLS), `smtps://…:465` (TLS from the first byte),
    `smtp+plain://127.0.0.1:2525` (no TLS, for a server beside this one). Raises ValueError.
    """
    parts = urlsplit(url)
    if parts.scheme not in SECURITY or not parts.hostname:
        raise ValueError(f"SMTP_URL must begin with {', '.join(SECURITY)} and name a host.")
    settings = {
        "host": parts.hostname,
        "port": parts.port or (465 if parts.scheme == "smtps" else 587),
        "security": SECURITY[parts.scheme],
        "username": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
    }
    Smtp.Settings.model_validate(settings)
    ProviderAccount.objects.update_or_create(
        organization_id=organization_id,
        name="smtp",
        defaults={
            "kind": Smtp.kind,
            "channel": "EMAIL",
            "credentials": orjson.dumps(settings).decode(),
        },
    )
    for channel in ("SMS", "PUSH"):  # an organization with one account has no simulator by itself
        ProviderAccount.objects.get_or_create(
            organization_id=organization_id,
            name=f"simulator-{channel.lower()}",
            defaults={"kind": Simulator.kind, "channel": channel},
        )
