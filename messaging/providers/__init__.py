"""The registry of providers: the one place that lists which exist, one line each.

Other packages import `REGISTRY` and `choices`, and use `simulator`, `smtp` (the demo),
`unknown_codes` and `anymail` (the console's forms). The contract is `rme.core.provider`.
"""

from messaging.providers.anymail import Anymail
from messaging.providers.http_sms import HttpSms
from messaging.providers.kannel import Kannel
from messaging.providers.ses import Ses
from messaging.providers.simulator import Simulator
from messaging.providers.smpp import Smpp
from messaging.providers.smtp import Smtp
from messaging.providers.twilio import Twilio
from messaging.providers.vonage import Vonage
from push.providers import Apns, Fcm, SalesforcePush, WebPush
from rme.core.provider import Provider

_ALL: tuple[type[Provider], ...] = (
    Smtp,
    Anymail,
    Ses,
    Twilio,
    Vonage,
    Kannel,
    Smpp,
    HttpSms,
    Apns,
    Fcm,
    WebPush,
    SalesforcePush,
    Simulator,
)
REGISTRY: dict[str, type[Provider]] = {provider.kind: provider for provider in _ALL}


def choices() -> list[tuple[str, str]]:
    """Return the kinds for a form, as `[("smtp", "SMTP"), …]`.

    The first migration refers to this function.
    """
    return [(kind, provider.label) for kind, provider in REGISTRY.items()]
