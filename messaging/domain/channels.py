"""The channels a message can take. Their names are part of the contract."""

from enum import StrEnum


class Channel(StrEnum):
    EMAIL = "EMAIL"
    SMS = "SMS"
    PUSH = "PUSH"


ALL = "ALL"
"""The wildcard in consent and suppression entries: every channel, or every category."""
