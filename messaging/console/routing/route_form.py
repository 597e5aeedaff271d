"""The form that asks what would happen to a message."""

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext, gettext_lazy

from messaging.console import wording
from messaging.console.access import Viewer
from messaging.domain.policy import TRANSACTIONAL
from messaging.policy import organization_policy


def _channels() -> list[tuple[str, str]]:
    return [("", gettext("By the address")), *wording.channels().items()]


class RouteForm(forms.Form):
    """A recipient, a channel and a category."""

    to = forms.CharField(
        max_length=320,
        label=gettext_lazy("Try a recipient"),
        widget=forms.TextInput(
            attrs={
                "autocomplete": "off",
                "placeholder": gettext_lazy("Email, phone, name or id"),
            }
        ),
    )
    channel = forms.ChoiceField(required=False, label=gettext_lazy("Channel"), choices=_channels)
    category = forms.ChoiceField(required=False, label=gettext_lazy("Category"))

    def __init__(self, viewer: Viewer, data: QueryDict | None = None) -> None:
        super().__init__(data, label_suffix="", auto_id="route_%s")
        names = sorted(organization_policy.of(viewer.organization_id).categories)
        field = self.fields["category"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(each, wording.category(each)) for each in names]
        field.initial = TRANSACTIONAL
