"""The filters of an endpoint's webhook deliveries: a form whose fields stand in the address."""

from collections.abc import Mapping
from typing import ClassVar

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from messaging.console.filters.filter_form import FilterForm, MomentField
from messaging.models import WebhookDelivery
from messaging.models.endpoints import ALL_EVENTS, TYPES
from messaging.webhooks import replays
from messaging.webhooks.delivery_log import WebhookDeliveryFilter

Status = WebhookDelivery.Status
STATUS: Mapping[str, tuple[str | Promise, str]] = {
    Status.PENDING: (_("Pending"), "info"),
    Status.DELIVERED: (_("Delivered"), "good"),
    Status.FAILED: (_("Failed"), "bad"),
}
"""Each status in words, and the name of its colour."""
EVENTS = (*(each for each in TYPES if each != ALL_EVENTS), replays.TEST_EVENT)


class WebhookFilterForm(FilterForm):
    search_name: ClassVar[str] = "webhook_id"
    webhook_id = forms.UUIDField(
        required=False,
        label=_("Event id"),
        widget=forms.TextInput(
            attrs={"type": "search", "autocomplete": "off", "placeholder": "webhook-id"}
        ),
    )
    status = forms.ChoiceField(
        required=False,
        label=_("Status"),
        choices=[
            ("", _("Any status")),
            *((code, words) for code, (words, _colour) in STATUS.items()),
        ],
    )
    type = forms.ChoiceField(
        required=False,
        label=_("Event"),
        choices=[("", _("Any event")), *((each, each) for each in EVENTS)],
    )
    since = MomentField(required=False, label=_("From"))
    until = MomentField(required=False, label=_("Until"))

    @property
    def in_words(self) -> str:
        """Return the filters that are set as a text."""
        return super().in_words or gettext("all deliveries")

    def read(self) -> WebhookDeliveryFilter:
        """Return what the form means; a form that is not valid filters by its valid fields."""
        return WebhookDeliveryFilter(**self.valid_values())
