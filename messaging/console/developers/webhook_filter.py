"""The filters of an endpoint's webhook deliveries: a form whose fields stand in the address."""

from collections.abc import Mapping

from django import forms

from messaging.console.filters.filter_form import FilterForm, MomentField
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


class WebhookFilterForm(FilterForm):
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

    @property
    def in_words(self) -> str:
        """Return the filters that are set as a text."""
        labels = {name: field.label or name.capitalize() for name, field in self.fields.items()}
        words = self.typed
        if words.get("status") in STATUS:
            words["status"] = STATUS[words["status"]][0]
        parts = [f"{labels[name]}: {value}" for name, value in words.items()]
        return ", ".join(parts) or "all deliveries"

    def read(self) -> WebhookDeliveryFilter:
        """Return what the form means; a form that is not valid filters by its valid fields."""
        return WebhookDeliveryFilter(**self.valid_values())
