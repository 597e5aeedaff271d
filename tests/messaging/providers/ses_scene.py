"""Amazon SES: an account, and what it is asked."""

from typing import Any

from messaging.providers.ses import Ses, SesSettings
from tests.fakes.sns import TOPIC


def account(**given: Any) -> Ses:
    settings = {
        "region": "eu-west-1",
        "access_key_id": "AKIDEXAMPLEEXAMPLE00",
        "secret_access_key": "very-secret",
        "configuration_set": "rme",
        "topic_arn": TOPIC,
        **given,
    }
    return Ses(SesSettings.model_validate(settings))
