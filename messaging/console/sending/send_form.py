"""The form of a message to one person: recipient, template, time, and the template's variables."""

from email.utils import parseaddr
from typing import Any, NamedTuple

from django import forms
from django.http import QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from messaging.console import wording
from messaging.console.access import Viewer
from messaging.console.filters.filter_form import MomentField
from messaging.console.studio import written
from messaging.content import previews, samples
from messaging.content.samples import SampleField
from messaging.domain import planning
from messaging.domain.channels import Channel
from messaging.domain.policy import TRANSACTIONAL
from messaging.models import TemplateVersion
from messaging.policy import organization_policy
from rme.core import addresses, errors
from rme.crm import people
from rme.crm.connectors.records import ContactRecord

MATCHES = 8
"""The most contacts that the page offers when several fit what was typed."""
LONGEST_RECIPIENT = 254
LONGEST_TEXT = 10_000
TEXT = "TEXT "
"""How the choice of an own text on a channel begins, in the list of templates."""
YES_OR_NO = [("true", gettext_lazy("Yes")), ("false", gettext_lazy("No"))]


class NewPerson(NamedTuple):
    """A recipient who was typed as in a mail program: `Ada Lovelace <ada@example.com>`."""

    first_name: str
    last_name: str
    email: str


def new_person(text: str) -> NewPerson | None:
    """Return the name and address that a text has; None unless it has both and is valid."""
    text = text.strip()
    if len(text) > LONGEST_RECIPIENT or "\0" in text:  # parseaddr recurses at each bracket
        return None
    name, address = parseaddr(text)
    email = addresses.typed_email(address) if name else None
    if not email:
        return None
    first_name, _space, last_name = name.rpartition(" ")
    return NewPerson(first_name[:255], last_name[:255], email)


class SendForm(forms.Form):
    """A recipient, and a published template with a field for each plain variable, or an own text.

    `contact` is the only person that fits, if there is one. `channel` is set once something to
    send is chosen, and `version` if it is a template's.
    """

    recipient = forms.CharField(
        max_length=LONGEST_RECIPIENT,
        label=gettext_lazy("Recipient"),
        help_text=gettext_lazy(
            "Email address, phone number, name or id of a contact. For somebody new: Name <email>."
        ),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    template = forms.ChoiceField(
        label=gettext_lazy("Template"),
        help_text=gettext_lazy("A published template, or a text of your own."),
        widget=forms.Select(attrs={"data-refreshes": "send-variables"}),
    )
    at = MomentField(required=False, label=gettext_lazy("Send at"))

    def __init__(self, viewer: Viewer, typed: QueryDict, *, is_complete: bool) -> None:
        data = typed if is_complete else None
        super().__init__(data, auto_id="send_%s", label_suffix="", initial=typed.dict())
        address = reverse("console:sample_contacts", args=[viewer.organization_id])
        self.fields["recipient"].widget.attrs["data-suggests"] = address
        self.viewer = viewer
        self.problem = ""
        self.new_person = new_person(typed.get("recipient", ""))
        email = self.new_person.email if self.new_person else ""
        self.matches = self._matches(email or typed.get("recipient", ""))
        self.contact = self.matches[0] if len(self.matches) == 1 else None
        versions = _versions(viewer)
        choices = {_code(each): _label(each) for each in versions}
        field = self.fields["template"]
        assert isinstance(field, forms.ChoiceField)
        texts = [(f"{TEXT}{channel}", words) for channel, words in _texts().items()]
        field.choices = [("", _("Choose")), *choices.items(), *texts]
        self.chosen = typed.get("template") or (next(iter(choices)) if len(choices) == 1 else "")
        self.initial["template"] = self.chosen
        variants = [each for each in versions if _code(each) == self.chosen]
        self.version = _version_for(viewer, variants, self.contact)
        self.channel = self._channel()
        if self.channel and not self.version:
            self._add_text_fields(self.channel)
        self.fields["at"].help_text = _("Now if empty. Time zone: %(zone)s.") % {
            "zone": viewer.organization.zone
        }
        self.schema = _schema(viewer, self.version) if self.version else {}
        for variable in samples.fields(self.schema):
            self.fields[f"{written.SAMPLE}{variable.path}"] = _field(variable)

    def _channel(self) -> Channel | None:
        """Return the channel of the template, or of the own text, that is chosen."""
        if self.version:
            return Channel(self.version.template.channel)
        code = self.chosen.removeprefix(TEXT)
        return Channel(code) if self.chosen.startswith(TEXT) and code in _texts() else None

    def _add_text_fields(self, channel: Channel) -> None:
        names = sorted(organization_policy.of(self.viewer.organization_id).categories)
        choices = [(name, wording.category(name)) for name in names]
        self.fields["category"] = forms.ChoiceField(
            label=_("Category"), choices=choices, initial=TRANSACTIONAL
        )
        if channel is Channel.EMAIL:
            self.fields["subject"] = forms.CharField(label=_("Subject"), max_length=200)
        rows = {"rows": 6 if channel is Channel.EMAIL else 3}
        self.fields["text"] = forms.CharField(
            label=_("Text"), max_length=LONGEST_TEXT, widget=forms.Textarea(attrs=rows)
        )

    @property
    def category(self) -> str:
        """Return the category of a valid form's message."""
        category: str = (
            self.version.template.category if self.version else self.cleaned_data["category"]
        )
        return category

    @property
    def source(self) -> dict[str, object]:
        """Return what a valid form's message says, as a request has it."""
        if self.version:
            template = self.version.template
            return {
                "template": {"name": template.name, "language": template.language},
                "context": {"variables": self.variables},
            }
        names = ("subject", "text")
        return {"content": {n: self.cleaned_data[n] for n in names if n in self.fields}}

    def clean_recipient(self) -> ContactRecord:
        """Return the only contact that fits what was typed."""
        if self.problem:
            raise forms.ValidationError(self.problem)
        if self.contact:
            return self.contact
        if self.matches:
            raise forms.ValidationError(_("Several contacts match. Choose one of them."))
        if self.new_person:
            text = _("%(address)s isn't a contact yet.")
            raise forms.ValidationError(text % {"address": self.new_person.email})
        raise forms.ValidationError(_("No contact matches. Add the person under Contacts first."))

    @property
    def variables(self) -> dict[str, object]:
        """Return the variables of a valid form; an empty field has no value."""
        return samples.filled(
            self.schema,
            {
                name.removeprefix(written.SAMPLE): value
                for name, value in self.cleaned_data.items()
                if name.startswith(written.SAMPLE)
            },
        )

    @property
    def variable_fields(self) -> list[forms.BoundField]:
        return [each for each in self if each.name.startswith(written.SAMPLE)]

    @property
    def text_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in ("category", "subject", "text") if name in self.fields]

    @property
    def empty_labels(self) -> list[str]:
        """Return the labels of a valid form's variables that have no value."""
        empty = (None, "")
        fields = self.variable_fields
        return [str(each.label) for each in fields if self.cleaned_data[each.name] in empty]

    def _matches(self, text: str) -> list[ContactRecord]:
        try:
            return people.find(self.viewer.organization_id, text[:LONGEST_RECIPIENT], limit=MATCHES)
        except errors.Unavailable as error:
            self.problem = error.message
            return []


def _versions(viewer: Viewer) -> list[TemplateVersion]:
    """Return the published versions of the organization's templates; one query, without texts."""
    rows = TemplateVersion.objects.filter(
        template__organization_id=viewer.organization_id, state=TemplateVersion.State.ACTIVE
    )
    return list(
        rows.select_related("template")
        .order_by("template__name", "template__channel", "template__language")
        .only("template__name", "template__channel", "template__language", "template__category")
    )


def _texts() -> dict[str, str]:
    """Return the own texts that can be sent, by channel."""
    return {
        Channel.EMAIL: _("Your own text (email)"),
        Channel.SMS: _("Your own text (SMS)"),
    }


def _code(version: TemplateVersion) -> str:
    return f"{version.template.channel} {version.template.name}"


def _label(version: TemplateVersion) -> str:
    channel = wording.channel_noun(version.template.channel)
    return f"{version.template.name} ({channel})"


def _version_for(
    viewer: Viewer, variants: list[TemplateVersion], contact: ContactRecord | None
) -> TemplateVersion | None:
    """Return the variant in the person's language, else in the organization's, else the first."""
    default = viewer.organization.language
    wanted = planning.languages((contact and contact.language) or default, default, chain=True)
    by_language = {each.template.language: each for each in variants}
    for language in (*wanted, *by_language):
        if language in by_language:
            return by_language[language]
    return None


def _schema(viewer: Viewer, version: TemplateVersion) -> dict[str, object]:
    """Return the schema, with a text for each variable that only the texts name."""
    values = samples.variables(version.variables)
    preview = previews.preview_texts(viewer.organization, version, samples.PERSON, values)
    missing = preview.rendered.missing if preview.rendered else ()
    return samples.with_missing(version.variables, missing)


def _field(variable: SampleField) -> forms.Field:
    """Return an empty field: a sample must not reach a person because nobody replaced it."""
    options: dict[str, Any] = {"label": variable.label, "required": variable.is_required}
    is_made_up = str(variable.value).startswith("[")
    attributes = {"autocomplete": "off"} if is_made_up else {"placeholder": str(variable.value)}
    match variable.kind:
        case "boolean":
            return forms.ChoiceField(
                label=variable.label, choices=[("", _("Choose")), *YES_OR_NO], required=True
            )
        case "choice":
            choices = [
                ("", _("Choose") if variable.is_required else _("No value")),
                *((each, each) for each in variable.choices),
            ]
            return forms.ChoiceField(**options, choices=choices)
        case "integer":
            return forms.IntegerField(**options, widget=forms.NumberInput(attrs=attributes))
        case "number":
            return forms.FloatField(**options, widget=forms.NumberInput(attrs=attributes))
        case "list" | "numbers":
            widget = forms.Textarea(attrs={"rows": 3, **attributes})
            return forms.CharField(**options, widget=widget, help_text=_("One per line."))
    return forms.CharField(**options, widget=forms.TextInput(attrs=attributes))
