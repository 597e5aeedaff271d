"""The registry of senders: the one place where it is written which push services exist."""

from push.providers.apns import Apns
from push.providers.base import Sender
from push.providers.fcm import Fcm
from push.providers.salesforce import Platform
from push.providers.webpush import WebPush

_ALL: tuple[type[Sender], ...] = (Apns, Fcm, WebPush, Platform)
REGISTRY: dict[str, type[Sender]] = {sender.kind: sender for sender in _ALL}
