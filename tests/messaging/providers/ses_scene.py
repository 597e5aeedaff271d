"""Amazon SES: an account, and what it is asked."""

from typing import Any

from messaging.providers.ses import Ses, SesSettings
from rme.transport import Transport
from tests.fakes.sns import TOPIC


def account(transport: Transport | None = None, **given: Any) -> Ses:
    settings = {
        "region": "eu-west-1",
        "access_key_id": "AKIDEXAMPLEEXAMPLE00",
        "secret_access_key": "very-secret",
        "configuration_set": "rme",
        "topic_arn": TOPIC,
        **given,
    }
    made = SesSettings.model_validate(settings)
    return Ses(made, lambda: transport) if transport else Ses(made)
