"""Forms of requests for data exports and erasures."""

from collections.abc import Mapping
from typing import ClassVar

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from messaging.consent.privacy import requests
from messaging.consent.privacy.requests import NewRequest, PrivacyRequestFilter
from messaging.console.access import Viewer
from messaging.console.filters.filter_form import FilterForm, MomentField, person_field
from messaging.models import PrivacyRequest
from rme.core import errors
from rme.crm.connectors.records import ContactRecord
from rme.crm.contacts import get_contacts

OVERDUE = "OVERDUE"
ADDRESS = "address"
"""The choice for an address that is no contact's."""


class PrivacyFilterForm(FilterForm):
    search_name: ClassVar[str] = "person"
    person = person_field()
    kind = forms.ChoiceField(
        required=False,
        label=_("Request"),
        choices=[("", _("Any request")), *PrivacyRequest.Kind.choices],
    )
    state = forms.ChoiceField(
        required=False,
        label=_("State"),
        choices=[("", _("Any state")), *PrivacyRequest.State.choices, (OVERDUE, _("Overdue"))],
    )

    def read(self, organization_id: str) -> PrivacyRequestFilter:
        """Return what the form means, without its page. Raise Unavailable."""
        self.is_valid()
        cleaned = self.cleaned_data
        state = cleaned.get("state", "")
        text = cleaned.get("person", "")
        subject = requests.subject_of(organization_id, text) if text else None
        return PrivacyRequestFilter(
            kind=cleaned.get("kind", ""),
            state="" if state == OVERDUE else state,
            overdue=state == OVERDUE,
            contact_ids=[each.id for each in subject.people] if subject else None,
            address=subject.address if subject else "",
        )


class NewRequestForm(forms.Form):
    """A request as it was received. Who is meant is searched, and chosen if it is not one."""

    kind = forms.ChoiceField(
        label=_("Request"), choices=[("", _("Choose")), *PrivacyRequest.Kind.choices]
    )
    person = forms.CharField(
        max_length=320,
        label=_("Person"),
        help_text=_("An email address, a phone number, a name or an id."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    chosen = forms.ChoiceField(required=False, label=_("Which person"), widget=forms.RadioSelect)
    note = forms.CharField(
        required=False,
        max_length=500,
        label=_("How it was requested"),
        help_text=_("For example: by email to privacy@. rme deletes it when the request ends."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    requested_at = MomentField(required=False, label=_("Date of the request (now if empty)"))

    def __init__(self, viewer: Viewer, data: Mapping[str, str] | None, **initial: str) -> None:
        super().__init__(data, auto_id="request_%s", label_suffix="", initial=initial)
        self.viewer = viewer
        self.subject = requests.Subject([])
        self.problem = ""
        if text := (data or initial).get("person", "").strip():
            self._look_up(text)
        options = [(each.id, self._label(each)) for each in self.subject.people]
        if self.subject.address:
            options = [
                (
                    ADDRESS,
                    gettext("%(address)s, which belongs to no contact")
                    % {"address": self.subject.address},
                )
            ]
        field = self.fields["chosen"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = options
        # One person needs no choice. That no contact has an address is to be confirmed.
        self.must_choose = len(options) > 1 or bool(self.subject.address)
        if not self.must_choose or data is None:
            del self.fields["chosen"]

    def _look_up(self, text: str) -> None:
        try:
            contact = get_contacts(self.viewer.organization_id, [text]).get(text)
            subject = requests.Subject([contact]) if contact else None
            self.subject = subject or requests.subject_of(self.viewer.organization_id, text)
        except errors.Unavailable as error:
            self.problem = error.message

    def _label(self, person: ContactRecord) -> str:
        parts = [person.name, self.viewer.shown(person.email), self.viewer.shown(person.mobile)]
        return ", ".join(filter(None, parts)) or person.id

    @property
    def who(self) -> str:
        """Return the person whom the form names, if it is one alone."""
        return self._label(self.subject.people[0]) if len(self.subject.people) == 1 else ""

    def clean_person(self) -> str:
        """Check that a person is found, or that it is an address."""
        if self.problem:
            raise forms.ValidationError(self.problem)
        if not self.subject.people and not self.subject.address:
            raise forms.ValidationError(
                gettext(
                    "No person found. To record a request for an address, type an email address "
                    "or a phone number."
                )
            )
        return str(self.cleaned_data["person"])

    def clean_chosen(self) -> str:
        """Require a choice where there is one."""
        choice = str(self.cleaned_data["chosen"])
        if not choice:
            raise forms.ValidationError(gettext("Choose a person."))
        return choice

    def open(self) -> PrivacyRequest | None:
        """Record the request; None if it cannot be, with the errors at their fields."""
        if not self.is_valid():
            return None
        cleaned = self.cleaned_data
        choice = cleaned.get("chosen") or self.subject.people[0].id
        new = NewRequest(
            cleaned["kind"],
            contact_id="" if choice == ADDRESS else choice,
            address=self.subject.address if choice == ADDRESS else "",
            note=cleaned["note"],
            requested_at=cleaned["requested_at"],
        )
        try:
            return requests.open_request(self.viewer.organization_id, new, self.viewer.actor)
        except errors.InvalidPayload as error:
            for detail in error.details:
                self.add_error(detail.field, f"This {detail.message}.")
            return None


class CarryOutForm(forms.Form):
    """The confirmation before a request is carried out."""

    checked = forms.BooleanField(
        label=_("I have checked that the request comes from this person"),
        error_messages={"required": _("First check that this person made the request.")},
    )


class RefusalForm(forms.Form):
    """The reason for which a request is refused."""

    reason = forms.CharField(
        max_length=500,
        label=_("Reason for the refusal"),
        help_text=_("The person has a right to know it."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
