"""The filters of an endpoint's webhook deliveries: a form whose fields stand in the address."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django import forms

from messaging.console.filters.message_filter import MomentField
from messaging.models import WebhookDelivery
from messaging.models.endpoints import ALL_EVENTS, TYPES
from messaging.webhooks import replays
from messaging.webhooks.delivery_log import WebhookDeliveryFilter

Status = WebhookDelivery.Status
STATUS: Mapping[str, tuple[str, str]] = {
    Status.PENDING: ("Waiting", "info"),
    Status.DELIVERED: ("Delivered", "good"),
    Status.FAILED: ("Given up", "bad"),
}
"""Each status in words, and the name of its colour."""
EVENTS = (*(each for each in TYPES if each != ALL_EVENTS), replays.TEST_EVENT)


class WebhookFilterForm(forms.Form):
    """Filters that combine. An empty field matches all."""

    status = forms.ChoiceField(
        required=False,
        choices=[("", "Any status"), *((code, words) for code, (words, _) in STATUS.items())],
    )
    type = forms.ChoiceField(
        required=False,
        label="Event",
        choices=[("", "Any event"), *((each, each) for each in EVENTS)],
    )
    webhook_id = forms.UUIDField(
        required=False,
        label="webhook-id",
        widget=forms.TextInput(attrs={"type": "search", "autocomplete": "off"}),
    )
    since = MomentField(required=False, label="From")
    until = MomentField(required=False, label="Until")

    def __init__(self, data: Mapping[str, str]) -> None:
        super().__init__(data, auto_id="filter_%s", label_suffix="")

    @property
    def given(self) -> dict[str, str]:
        """Return the filters that are set, as they were typed."""
        return {name: self.data[name] for name in self.fields if self.data.get(name)}

    @property
    def query(self) -> str:
        """Return the filters that are set as a query string."""
        return urlencode(self.given)

    @property
    def in_words(self) -> str:
        """Return the filters that are set as a text."""
        labels = {name: field.label or name.capitalize() for name, field in self.fields.items()}
        words = dict(self.given)
        if words.get("status") in STATUS:
            words["status"] = STATUS[words["status"]][0]
        parts = [f"{labels[name]}: {value}" for name, value in words.items()]
        return ", ".join(parts) or "all deliveries"

    def read(self) -> WebhookDeliveryFilter:
        """Return what the form means; a form that is not valid filters by its valid fields."""
        self.is_valid()
        cleaned: dict[str, Any] = self.cleaned_data
        return WebhookDeliveryFilter(**{name: value for name, value in cleaned.items() if value})
