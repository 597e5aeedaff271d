"""What organizations decide about sending: categories, sender domains, quiet hours and ceilings."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import NamedTuple

from messaging.domain.channels import Channel
from messaging.domain.sentences import Sentence, sentence

TRANSACTIONAL = "TRANSACTIONAL"
MARKETING = "MARKETING"
DEFAULT_CHANNEL_ORDER = (Channel.PUSH, Channel.EMAIL, Channel.SMS)


class FrequencyCap(NamedTuple):
    """How many messages of a category a contact gets at most within a window."""

    limit: int
    window: timedelta


@dataclass(frozen=True, slots=True)
class CategoryRules:
    """A category as sending needs it."""

    name: str
    opt_in: bool
    resend_unknown: bool
    expires_after: timedelta
    cap: FrequencyCap | None = None
    channel_order: tuple[Channel, ...] = DEFAULT_CHANNEL_ORDER

    @property
    def priority(self) -> int:
        """Return 0 for TRANSACTIONAL, which goes before 1, all else."""
        return 0 if self.name == TRANSACTIONAL else 1


BUILT_IN = {
    TRANSACTIONAL: CategoryRules(TRANSACTIONAL, False, True, timedelta(hours=24)),
    MARKETING: CategoryRules(MARKETING, True, False, timedelta(hours=4)),
}
"""The categories that every organization has, unless a row of the same name replaces them."""


@dataclass(frozen=True, slots=True)
class Domain:
    """A verified sender domain."""

    domain: str
    local_part: str
    name: str


@dataclass(frozen=True, slots=True)
class SendingRulesRecord:
    """How an organization sends: quiet hours by channel, and ceilings on what is accepted."""

    quiet_hours: Mapping[str, Mapping[str, str]]
    quiet_transactional: bool
    schedule_grace: timedelta
    sends_per_second: int | None
    sends_per_day: int
    double_opt_in: bool
    track_opens: bool
    track_clicks: bool
    review_templates: bool = False
    """Whether a second person must agree before a version of a template is made active."""


@dataclass(frozen=True, slots=True)
class SendingPolicy:
    """What an organization has decided about its messages, whichever accounts send them."""

    categories: Mapping[str, CategoryRules]
    domains: Mapping[str, Domain]
    default_domain: Domain | None
    sending: SendingRulesRecord

    def rules(self, category: str) -> CategoryRules:
        """Return a category's rules. A category that was deleted needs consent, like MARKETING."""
        return rules_of(self.categories, category)

    def quiet(self, channel: str, rules: CategoryRules) -> Mapping[str, str] | None:
        """Return the quiet hours (`from`, `until`: HH:MM) of a category on a channel."""
        return quiet_hours(self.sending, channel, rules)


def unknown_category(name: str, categories: Iterable[str]) -> Sentence:
    """Return the sentence for a category that an organization doesn't have; names at most ten."""
    names = sorted(categories)
    listed = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
    return sentence("no such category: %(name)s (there are %(names)s)", name=name, names=listed)


def rules_of(categories: Mapping[str, CategoryRules], category: str) -> CategoryRules:
    """Return a category's rules. A category that was deleted needs consent, like MARKETING."""
    return categories.get(category) or replace(categories[MARKETING], name=category)


def quiet_hours(
    sending: SendingRulesRecord, channel: str, rules: CategoryRules
) -> Mapping[str, str] | None:
    """Return the quiet hours (`from`, `until`: HH:MM) of a category on a channel."""
    if rules.name == TRANSACTIONAL and not sending.quiet_transactional:
        return None
    return sending.quiet_hours.get(channel)
