"""placeholder"""
from messaging.providers.base import *
class Smtp(Provider):
    kind="smtp"; label="SMTP"; channels=frozenset({Channel.EMAIL})
