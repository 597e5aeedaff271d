"""The form that asks what would happen to a message."""

from django import forms
from django.http import QueryDict

from messaging.console.access import Viewer
from messaging.domain.channels import Channel
from messaging.domain.policy import TRANSACTIONAL
from messaging.policy import organization_policy


class RouteForm(forms.Form):
    """A recipient, a channel and a category."""

    to = forms.CharField(
        max_length=320,
        label="What would happen to",
        help_text="An address, a number, or a person's name or id.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "+41791234567"}),
    )
    channel = forms.ChoiceField(
        required=False,
        choices=[("", "By the address"), *((each.value, each.value) for each in Channel)],
    )
    category = forms.ChoiceField(required=False)

    def __init__(self, viewer: Viewer, data: QueryDict | None = None) -> None:
        super().__init__(data, label_suffix="", auto_id="route_%s")
        names = sorted(organization_policy.of(viewer.organization_id).categories)
        field = self.fields["category"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(each, each) for each in names]
        field.initial = TRANSACTIONAL
