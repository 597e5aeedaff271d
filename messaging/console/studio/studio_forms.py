"""The small forms of the studio: a new template, another language, a category, a time."""

from datetime import datetime

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from messaging.console import wording
from messaging.console.access import Viewer
from messaging.console.filters.filter_form import MomentField
from messaging.domain.policy import TRANSACTIONAL
from messaging.models import Template
from messaging.policy import organization_policy
from rme.tenants.admin.offered import LongSelect
from rme.tenants.organizations import languages


def _language(initial: str = "") -> forms.ChoiceField:
    choices = [("", _("Choose")), *languages.choices()]
    return forms.ChoiceField(choices=choices, initial=initial, widget=LongSelect)


def _category(
    viewer: Viewer, initial: str, *further: str, is_filter: bool = False
) -> forms.ChoiceField:
    names = sorted({*organization_policy.of(viewer.organization_id).categories, *further})
    choices = [
        *([("", _("All"))] if is_filter else []),
        *((each, wording.category(each)) for each in names),
    ]
    return forms.ChoiceField(choices=choices, initial=initial, required=not is_filter)


class NewTemplateForm(forms.Form):
    """A template that does not exist yet. It begins with the organization's language."""

    name = forms.CharField(
        max_length=200,
        validators=Template._meta.get_field("name").validators[:1],
        error_messages={
            "invalid": gettext_lazy(
                "Use letters, digits, -, . and _. Begin with a letter or digit."
            )
        },
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "welcome"}),
    )
    channel = forms.ChoiceField(choices=wording.channels)

    def __init__(self, viewer: Viewer, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="new_%s", label_suffix="")
        self.fields["category"] = _category(viewer, TRANSACTIONAL)
        self.fields["language"] = _language(viewer.organization.language)


def _all_channels() -> list[tuple[str, str]]:
    return [("", _("All")), *wording.channels().items()]


class TemplateFilterForm(forms.Form):
    """What a list of templates shows. A value that isn't offered doesn't filter."""

    channel = forms.ChoiceField(choices=_all_channels, required=False)

    def __init__(self, viewer: Viewer, data: QueryDict) -> None:
        super().__init__(data, auto_id="filter_%s", label_suffix="")
        self.fields["category"] = _category(viewer, "", is_filter=True)
        self.full_clean()


class AnotherForm(forms.Form):
    """Another language or channel of a template. Texts are copied where the channel is the same."""

    def __init__(self, template: Template, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="another_%s", label_suffix="")
        self.fields["to_language"] = _language()
        self.fields["to_language"].label = _("Language")
        self.fields["to_channel"] = forms.ChoiceField(
            choices=wording.channels, initial=template.channel, label=_("Channel")
        )


class TemplateCategoryForm(forms.Form):
    """The category of a template."""

    def __init__(self, viewer: Viewer, template: Template, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="category_%s", label_suffix="")
        self.fields["to_category"] = _category(viewer, template.category, template.category)
        self.fields["to_category"].label = _("Category")


class PublishForm(forms.Form):
    """When a version is made active."""

    at = MomentField(required=False, label=gettext_lazy("Date (now if empty)"))

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="publish_%s", label_suffix="")

    def moment(self, viewer: Viewer) -> datetime | None:
        """Return the time in the organization's zone, or None for now."""
        at: datetime | None = self.cleaned_data["at"]
        return at and at.replace(tzinfo=viewer.zone)
