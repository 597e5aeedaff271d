"""The filters of the message list: a form whose fields stand in the page's address."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils import timezone

from messaging.console import wording
from messaging.console.access import Viewer
from messaging.console.filters.filter_form import FilterForm, MomentField, search_field
from messaging.delivery.accounts import SIMULATORS
from messaging.domain.channels import Channel
from messaging.domain.figures import STATUSES, Figure
from messaging.models import Template
from messaging.policy import organization_policy
from messaging.store.reports.deliveries import DeliveryFilter
from rme.core import errors
from rme.crm import people

PERIODS = {
    "1": ("Last hour", timedelta(hours=1)),
    "24": ("Last 24 hours", timedelta(hours=24)),
    "168": ("Last 7 days", timedelta(days=7)),
    "720": ("Last 30 days", timedelta(days=30)),
}
MODES = {"live": "Live", "test": "Test"}
PEOPLE = 50
"""The most people that a search for a person filters by."""
TEMPLATES = 500
HELD = "HELD"
"""The status to choose for deliveries in manual review, which are UNKNOWN as others are."""
WAITING = "WAITING"
"""The status to choose for all deliveries that have not been sent and may still be."""
MOMENT = "%Y-%m-%dT%H:%M"
"""The form of `since` and `until`, in the organization's time zone."""
RECIPIENTS = 100
"""The most recipients of one message."""
LABELS: Mapping[str, Mapping[str, str]] = {
    "status": {code: text for code, (text, _) in wording.STATUS.items()}
    | {WAITING: "Waiting, scheduled or being sent", HELD: "In manual review"},
    "reason": {code: text[:1].upper() + text[1:] for code, text in wording.REASONS.items()},
    "mode": MODES,
    "period": {code: text for code, (text, _) in PERIODS.items()},
}
"""The values of fields in words, by field."""


def _choices(empty: str, values: Sequence[str] | Mapping[str, str]) -> list[tuple[str, str]]:
    pairs = values.items() if isinstance(values, Mapping) else ((each, each) for each in values)
    return [("", empty), *pairs]


class MessageFilterForm(FilterForm):
    person = search_field("Email, phone, name or id")
    status = forms.ChoiceField(required=False)
    channel = forms.ChoiceField(required=False)
    category = forms.ChoiceField(required=False)
    template = forms.ChoiceField(required=False)
    provider = forms.ChoiceField(required=False, label="Provider account")
    reason = forms.ChoiceField(required=False)
    mode = forms.ChoiceField(required=False)
    period = forms.ChoiceField(required=False)
    since = MomentField(required=False, label="From")
    until = MomentField(required=False, label="Until")

    def __init__(self, viewer: Viewer, data: Mapping[str, str]) -> None:
        super().__init__(data)
        self.viewer = viewer
        policy = organization_policy.of(viewer.organization_id)
        rows = Template.objects.filter(organization_id=viewer.organization_id)
        names = rows.order_by("name").values_list("name", flat=True).distinct()[:TEMPLATES]
        accounts = [each.name for each in (*policy.accounts, *SIMULATORS.values())]
        self.offer("status", _choices("Any status", LABELS["status"]))
        self.offer("channel", _choices("Any channel", list(Channel)))
        self._offer_names("category", "Any category", sorted(policy.categories))
        self._offer_names("template", "Any template", list(names))
        self._offer_names("provider", "Any account", list(dict.fromkeys(accounts)))
        self._offer_names("reason", "Any reason", LABELS["reason"])
        self.offer("mode", _choices("Live and test", LABELS["mode"]))
        self.offer("period", _choices("Any time", LABELS["period"]))

    def _offer_names(
        self, name: str, empty: str, values: Sequence[str] | Mapping[str, str]
    ) -> None:
        """Offer names, and the one that is set: the messages of a name that is gone are there."""
        choices, value = _choices(empty, values), self.data.get(name, "")
        if value not in dict(choices) and "\0" not in value:  # PostgreSQL refuses NUL
            choices.append((value, value))
        self.offer(name, choices)

    @property
    def has_more(self) -> bool:
        """Return whether filters besides the person are set."""
        return bool(self.typed.keys() - {"person"})

    @property
    def in_words(self) -> str:
        """Return the filters that are set as a text."""
        return in_words(self.data)


def in_words(data: Mapping[str, str]) -> str:
    """Return the filters of a query as a text."""
    parts = []
    for name, field in MessageFilterForm.base_fields.items():
        if value := data.get(name):
            label = field.label or name.capitalize()
            parts.append(f"{label}: {LABELS.get(name, {}).get(value, value)}")
    return ", ".join(parts) or "all messages"


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a form of filters means. `problem` is a sentence, or empty."""

    delivery_filter: DeliveryFilter
    problem: str = ""
    matches_nobody: bool = False
    """Whether a person was searched for and not found: then there are no messages."""

    @property
    def contact_id(self) -> str:
        """Return the person whom the filters name, if it is one alone."""
        return (
            self.delivery_filter.contact_ids[0]
            if len(self.delivery_filter.contact_ids) == 1
            else ""
        )


def read(form: MessageFilterForm) -> Chosen:
    """Return what a form means; a form that is not valid filters by its valid fields."""
    form.is_valid()
    cleaned: dict[str, Any] = form.cleaned_data
    contact_ids, problem = [], ""
    if text := cleaned.get("person", ""):
        try:
            contacts = people.find(form.viewer.organization_id, text, limit=PEOPLE)
            contact_ids = [each.id for each in contacts]
        except errors.Unavailable as error:
            problem = error.message
    status = cleaned.get("status")
    delivery_filter = DeliveryFilter(
        statuses=_statuses(status or ""),
        held=status == HELD,
        channel=cleaned.get("channel") or None,
        category=cleaned.get("category") or None,
        template=cleaned.get("template") or None,
        provider=cleaned.get("provider") or None,
        reason=cleaned.get("reason") or None,
        contact_ids=contact_ids,
        since=_since(cleaned.get("since"), cleaned.get("period", "")),
        until=cleaned.get("until"),
        test={"live": False, "test": True}.get(cleaned.get("mode", "")),
    )
    return Chosen(delivery_filter, problem, matches_nobody=bool(text and not contact_ids))


def _statuses(status: str) -> Sequence[str]:
    if status == WAITING:
        return STATUSES[Figure.WAITING]
    return [status] if status and status != HELD else []


def _since(since: datetime | None, period: str) -> datetime | None:
    if since is None and period:
        return timezone.now() - PERIODS[period][1]
    return since
