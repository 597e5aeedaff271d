"""The small forms of the studio: a new template, another language, a category, a time."""

from datetime import datetime
from typing import ClassVar

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from messaging.console import wording
from messaging.console.access import Viewer
from messaging.console.filters.filter_form import FilterForm, MomentField, search_field
from messaging.domain.policy import TRANSACTIONAL
from messaging.models import Template
from messaging.policy import organization_policy
from rme.tenants.admin.offered import LongSelect
from rme.tenants.organizations import languages


def _language(viewer: Viewer, initial: str = "", *others: str) -> forms.ChoiceField:
    choices = [("", _("Choose")), *languages.offered(viewer.organization, *others)]
    return forms.ChoiceField(
        label=_("Language"), choices=choices, initial=initial, widget=LongSelect
    )


def _categories(viewer: Viewer, *further: str) -> list[tuple[str, str]]:
    names = sorted({*organization_policy.of(viewer.organization_id).categories, *further})
    return [(each, wording.category(each)) for each in names]


class NewTemplateForm(forms.Form):
    """A template that does not exist yet. It begins with the organization's language."""

    name = forms.CharField(
        max_length=200,
        label=gettext_lazy("Name"),
        validators=Template._meta.get_field("name").validators[:1],
        error_messages={
            "invalid": gettext_lazy(
                "Use letters, digits, -, . and _. Begin with a letter or digit."
            )
        },
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "autofocus": True, "placeholder": "welcome"}
        ),
    )
    channel = forms.ChoiceField(label=gettext_lazy("Channel"), choices=wording.channels)

    def __init__(self, viewer: Viewer, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="new_%s", label_suffix="")
        self.fields["category"] = forms.ChoiceField(
            label=_("Category"), choices=_categories(viewer), initial=TRANSACTIONAL
        )
        self.fields["language"] = _language(viewer, viewer.organization.language)


def _every_channel() -> list[tuple[str, str]]:
    return [("", _("Any channel")), *wording.channels().items()]


class TemplateFilterForm(FilterForm):
    """What a list of templates shows."""

    REVIEW, ARCHIVED = "review", "archived"
    search_name: ClassVar[str] = "q"
    q = search_field(gettext_lazy("Name"), gettext_lazy("Name"))
    state = forms.ChoiceField(
        required=False,
        label=gettext_lazy("State"),
        choices=[
            ("", gettext_lazy("In use")),
            (REVIEW, gettext_lazy("Waiting for review")),
            (ARCHIVED, gettext_lazy("Archived")),
        ],
    )
    channel = forms.ChoiceField(
        required=False, label=gettext_lazy("Channel"), choices=_every_channel
    )
    category = forms.ChoiceField(required=False, label=gettext_lazy("Category"))

    def __init__(self, viewer: Viewer, data: QueryDict) -> None:
        super().__init__(data)
        self.offer("category", [("", _("Any category")), *_categories(viewer)])


class AnotherForm(forms.Form):
    """Another language or channel of a template. Texts are copied where the channel is the same."""

    def __init__(self, viewer: Viewer, template: Template, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="another_%s", label_suffix="")
        self.fields["to_language"] = _language(viewer, "", template.language)
        self.fields["to_channel"] = forms.ChoiceField(
            choices=wording.channels, initial=template.channel, label=_("Channel")
        )


class TemplateCategoryForm(forms.Form):
    """The category of a template."""

    def __init__(self, viewer: Viewer, template: Template, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="category_%s", label_suffix="")
        self.fields["to_category"] = forms.ChoiceField(
            choices=_categories(viewer, template.category),
            initial=template.category,
            label=_("Category"),
        )


class PublishForm(forms.Form):
    """When a version is made active."""

    at = MomentField(required=False, label=gettext_lazy("Date (now if empty)"))

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="publish_%s", label_suffix="")

    def moment(self, viewer: Viewer) -> datetime | None:
        """Return the time in the organization's zone, or None for now."""
        at: datetime | None = self.cleaned_data["at"]
        return at and at.replace(tzinfo=viewer.zone)
