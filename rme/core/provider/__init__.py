"""The one contract of all that take a message: email, SMS and push providers alike.

Frozen values go in, outcomes (`rme.core.outcomes`) come out. `content` is the content to send,
`callbacks` what providers report, `base` the provider itself, `refusals` what refusals mean, and
`http` what providers over HTTP share. How to write a provider: docs/adding-a-provider.md.
"""

from rme.core.provider.base import (
    Dispatch,
    Progress,
    Provider,
    ProviderSettings,
    StoreReceived,
    no_progress,
    send_together,
)
from rme.core.provider.callbacks import (
    CallbackContent,
    CallbackRequest,
    DeliveryReceipt,
    InboundSms,
    SentMessage,
    SmsPart,
    UnknownCode,
)
from rme.core.provider.content import Content, Email, Push, Sms

__all__ = [
    "CallbackContent",
    "CallbackRequest",
    "Content",
    "DeliveryReceipt",
    "Dispatch",
    "Email",
    "InboundSms",
    "Progress",
    "Provider",
    "ProviderSettings",
    "Push",
    "SentMessage",
    "Sms",
    "SmsPart",
    "StoreReceived",
    "UnknownCode",
    "no_progress",
    "send_together",
]
