"""The channels a message can take. Their names are part of the contract."""

from enum import StrEnum

from messaging.domain.sentences import sentence


class Channel(StrEnum):
    EMAIL = "EMAIL"
    SMS = "SMS"
    PUSH = "PUSH"

    @property
    def label(self) -> str:
        """Return its name as people write it."""
        return _LABELS[self]

    @property
    def noun(self) -> str:
        """Return its name within a sentence."""
        return _NOUNS[self]


_LABELS = {
    Channel.EMAIL: sentence("Email"),
    Channel.SMS: sentence("SMS"),
    Channel.PUSH: sentence("Push"),
}
_NOUNS = {
    Channel.EMAIL: sentence("email"),
    Channel.SMS: sentence("SMS"),
    Channel.PUSH: sentence("push"),
}

ALL = "ALL"
"""The wildcard in consent and suppression entries: every channel, or every category."""
