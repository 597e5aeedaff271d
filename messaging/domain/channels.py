"""The channels a message can take. Their names are part of the contract."""

from enum import StrEnum


class Channel(StrEnum):
    EMAIL = "EMAIL"
    SMS = "SMS"
    PUSH = "PUSH"

    @property
    def label(self) -> str:
        """Return its name as people write it."""
        return self.value if self is Channel.SMS else self.value.capitalize()

    @property
    def noun(self) -> str:
        """Return its name within a sentence."""
        return self.value if self is Channel.SMS else self.value.lower()


ALL = "ALL"
"""The wildcard in consent and suppression entries: every channel, or every category."""
