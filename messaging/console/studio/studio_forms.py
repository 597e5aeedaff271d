"""The small forms of the studio: a new template, another language, a time of publishing."""

from datetime import datetime

from django import forms
from django.http import QueryDict

from messaging.console.access import Viewer
from messaging.console.filters.message_filter import MomentField
from messaging.models import Template
from messaging.policy import organization_policy
from rme.core.channels import Channel
from rme.tenants import languages

CHANNELS = [(each.value, each.value) for each in Channel]


def _language(initial: str = "") -> forms.ChoiceField:
    choices = [("", "Choose"), *languages.choices()]
    return forms.ChoiceField(choices=choices, initial=initial)


class NewTemplateForm(forms.Form):
    """A template that does not exist yet. It begins with the organization's language."""

    name = forms.CharField(
        max_length=200,
        validators=Template._meta.get_field("name").validators[:1],
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "welcome"}),
    )
    channel = forms.ChoiceField(choices=CHANNELS)
    category = forms.ChoiceField()

    def __init__(self, viewer: Viewer, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="new_%s", label_suffix="")
        self.fields["language"] = _language(viewer.organization.language)
        names = sorted(organization_policy.of(viewer.organization_id).categories)
        field = self.fields["category"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(each, each) for each in names]
        field.initial = organization_policy.TRANSACTIONAL


class AnotherForm(forms.Form):
    """Another language or channel of a template. Texts are copied where the channel is the same."""

    def __init__(self, template: Template, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="another_%s", label_suffix="")
        self.fields["to_language"] = _language()
        self.fields["to_language"].label = "Language"
        self.fields["to_channel"] = forms.ChoiceField(
            choices=CHANNELS, initial=template.channel, label="Channel"
        )


class PublishForm(forms.Form):
    """When a version is made active."""

    at = MomentField(required=False, label="When (empty: now)")

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="publish_%s", label_suffix="")

    def moment(self, viewer: Viewer) -> datetime | None:
        """Return the time in the organization's zone, or None for now."""
        at: datetime | None = self.cleaned_data["at"]
        return at and at.replace(tzinfo=viewer.zone)
