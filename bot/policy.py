"""An organization's bot settings: immutable, and cached for ten seconds."""

from dataclasses import dataclass

from bot.models import BotSettings
from rme.core.cache import TtlCache

OnDuplicate = BotSettings.OnDuplicate


@dataclass(frozen=True, slots=True)
class BotPolicy:
    """The settings of an organization's bots."""

    always_200: bool
    max_records: int
    on_duplicate_contact: str
    on_duplicate_account: str


_policies: TtlCache[str, BotPolicy] = TtlCache(seconds=10)
FIELDS = ("always_200", "max_records", "on_duplicate_contact", "on_duplicate_account")


def of(organization_id: str) -> BotPolicy:
    """Return an organization's settings, or the defaults."""

    def load() -> BotPolicy:
        row = BotSettings.objects.filter(organization_id=organization_id).first() or BotSettings()
        return BotPolicy(*(getattr(row, name) for name in FIELDS))

    policy = _policies.get(organization_id, load)
    assert policy is not None  # load never returns None
    return policy
