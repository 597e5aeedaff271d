"""The filters of the message list: a form whose fields stand in the page's address."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django import forms
from django.utils import timezone
from django.utils.functional import Promise, lazy
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from messaging.console import wording
from messaging.console.access import Viewer
from messaging.console.filters.filter_form import FilterForm, MomentField, person_field
from messaging.delivery.accounts import SIMULATORS
from messaging.domain.figures import STATUSES, Figure
from messaging.models import Template
from messaging.policy import organization_policy
from messaging.store.reports.deliveries import DeliveryFilter
from rme.core import errors
from rme.crm import people

PERIODS = {
    "1": (gettext_lazy("Last hour"), timedelta(hours=1)),
    "24": (gettext_lazy("Last 24 hours"), timedelta(hours=24)),
    "168": (gettext_lazy("Last 7 days"), timedelta(days=7)),
    "720": (gettext_lazy("Last 30 days"), timedelta(days=30)),
}
MODES = {"live": gettext_lazy("Live"), "test": gettext_lazy("Test")}
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


def _label(text: str) -> str:
    """Return words as a label in the language of the page."""
    return str(capfirst(_(text)))


_lazy_label = lazy(_label, str)
LABELS: Mapping[str, Mapping[str, str | Promise]] = {
    "status": {code: gettext_lazy(text) for code, (text, _colour) in wording.STATUS.items()}
    | {
        WAITING: gettext_lazy("Waiting, scheduled or being sent"),
        HELD: gettext_lazy("Needs review"),
    },
    "reason": {code: _lazy_label(text) for code, text in wording.REASONS.items()},
    "mode": MODES,
    "period": {code: text for code, (text, _length) in PERIODS.items()},
}
"""The values of fields in words, by field."""


class MessageFilterForm(FilterForm):
    search_name: ClassVar[str] = "person"
    person = person_field()
    status = forms.ChoiceField(required=False, label=gettext_lazy("Status"))
    channel = forms.ChoiceField(required=False, label=gettext_lazy("Channel"))
    category = forms.ChoiceField(required=False, label=gettext_lazy("Category"))
    template = forms.ChoiceField(required=False, label=gettext_lazy("Template"))
    provider = forms.ChoiceField(required=False, label=gettext_lazy("Provider account"))
    reason = forms.ChoiceField(required=False, label=gettext_lazy("Reason"))
    mode = forms.ChoiceField(required=False, label=gettext_lazy("Mode"))
    period = forms.ChoiceField(required=False, label=gettext_lazy("Period"))
    since = MomentField(required=False, label=gettext_lazy("From"))
    until = MomentField(required=False, label=gettext_lazy("Until"))

    def __init__(self, viewer: Viewer, data: Mapping[str, str]) -> None:
        super().__init__(data)
        self.viewer = viewer
        policy = organization_policy.of(viewer.organization_id)
        rows = Template.objects.filter(organization_id=viewer.organization_id)
        names = rows.order_by("name").values_list("name", flat=True).distinct()[:TEMPLATES]
        accounts = [each.name for each in (*policy.accounts, *SIMULATORS.values())]
        categories = {code: wording.category(code) for code in sorted(policy.categories)}
        self._offer_words("status", _("Any status"), LABELS["status"])
        self._offer_words("channel", _("Any channel"), wording.channels())
        self._offer_names("category", _("Any category"), categories)
        self._offer_names("template", _("Any template"), {each: each for each in names})
        self._offer_names("provider", _("Any account"), {each: each for each in accounts})
        self._offer_names("reason", _("Any reason"), LABELS["reason"])
        self._offer_words("mode", _("Live and test"), LABELS["mode"])
        self._offer_words("period", _("Any time"), LABELS["period"])

    def _offer_words(self, name: str, empty: str, words: Mapping[str, str | Promise]) -> None:
        self.offer(name, [("", empty), *words.items()])

    def _offer_names(self, name: str, empty: str, words: Mapping[str, str | Promise]) -> None:
        """Offer names, and the one that is set: the messages of a name that is gone are there."""
        value = self.data.get(name, "")
        gone = {} if value in words or not value or "\0" in value else {value: value}
        self._offer_words(name, empty, {**words, **gone})  # PostgreSQL refuses NUL

    @property
    def in_words(self) -> str:
        """Return the filters that are set as a text."""
        return in_words(self.data)


def in_words(data: Mapping[str, str]) -> str:
    """Return the filters of a query as a text."""
    parts = [
        f"{field.label}: {value_in_words(name, value)}"
        for name, field in MessageFilterForm.base_fields.items()
        if (value := data.get(name))
    ]
    return ", ".join(parts) or _("all messages")


def value_in_words(name: str, value: str) -> str:
    """Return the value of a filter as people say it."""
    if name == "channel":
        return wording.channel(value)
    if name == "category":
        return wording.category(value)
    return str(LABELS.get(name, {}).get(value, value))


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
        since=since_of(cleaned.get("since"), cleaned.get("period", "")),
        until=cleaned.get("until"),
        test={"live": False, "test": True}.get(cleaned.get("mode", "")),
    )
    return Chosen(delivery_filter, problem, matches_nobody=bool(text and not contact_ids))


def _statuses(status: str) -> Sequence[str]:
    if status == WAITING:
        return STATUSES[Figure.WAITING]
    return [status] if status and status != HELD else []


def since_of(since: datetime | None, period: str) -> datetime | None:
    """Return the start of a period: as typed, or so long ago as its name says."""
    if since is None and period:
        return timezone.now() - PERIODS[period][1]
    return since
