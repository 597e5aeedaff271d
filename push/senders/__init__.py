"""The registry of senders: the one place where it is written which push services exist."""

from push.senders.apns import Apns
from push.senders.base import Sender
from push.senders.fcm import Fcm
from push.senders.platform import Platform
from push.senders.webpush import WebPush

_ALL: tuple[type[Sender], ...] = (Apns, Fcm, WebPush, Platform)
REGISTRY: dict[str, type[Sender]] = {sender.kind: sender for sender in _ALL}
