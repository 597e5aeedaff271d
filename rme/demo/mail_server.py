"""A real mail server for the demo organization, where `SMTP_URL` names one."""

import orjson

from messaging.models import ProviderAccount
from messaging.providers.smtp import Smtp
from rme.core.environment import smtp_url


def use(url: str, organization_id: str) -> None:
    """Have the demo organization send its email by a server. Raises ValueError."""
    settings = smtp_url.parse(url)._asdict()
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
