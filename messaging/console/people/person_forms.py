"""Forms of a person's page: a decision with its evidence."""

from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from messaging.consent import entries
from messaging.consent.entry_inputs import CONSENT
from messaging.console import wording
from messaging.console.access import Viewer
from messaging.domain.channels import ALL
from messaging.models import ConsentEntry
from messaging.policy import organization_policy
from rme.core import errors
from rme.core.http.parsing import parse

CHANNELS: list[tuple[str, Any]] = [(ALL, _("All channels")), *wording.CHANNELS]
_FIELDS = {"occurredAt": "occurred_at", "contactId": None}


class DecisionForm(forms.Form):
    """One decision of a person. A subclass says which."""

    status: str
    kind_needed = False
    """Whether the kind of evidence must be chosen: who consents has to be able to prove it."""
    channel = forms.ChoiceField(label=_("Channel"), choices=CHANNELS)
    category = forms.ChoiceField(label=_("Category"))
    evidence = forms.CharField(
        max_length=2000,
        label=_("Evidence"),
        help_text=_("For example: by phone on 3 May, asked by Sam."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    kind = forms.ChoiceField(label=_("Kind of evidence"))
    url = forms.URLField(
        required=False,
        max_length=2000,
        label=_("Address of the form or document"),
        assume_scheme="https",
        widget=forms.URLInput(attrs={"autocomplete": "off"}),
    )
    ip = forms.GenericIPAddressField(required=False, label=_("IP address of the person"))
    occurred_at = forms.DateTimeField(
        required=False,
        label=_("Date (now if empty)"),
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"],
    )

    def __init__(self, viewer: Viewer, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id=f"{self.status.lower()}_%s", label_suffix="")
        self.viewer = viewer
        names = sorted(organization_policy.of(viewer.organization_id).categories)
        categories = [(each, wording.category(each)) for each in names]
        choices = {
            "channel": (CHANNELS[0], CHANNELS[1:]),
            "category": ((ALL, wording.category(ALL)), categories),
        }
        for name, (every, options) in choices.items():
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = self.offered(every, options)

        kind = self.fields["kind"]
        assert isinstance(kind, forms.ChoiceField)
        kind.required = self.kind_needed
        kinds = [(code, capfirst(wording.evidence_kind(code))) for code in wording.EVIDENCE_KINDS]
        kind.choices = [
            ("", gettext("Choose") if self.kind_needed else gettext("Not stated")),
            *kinds,
        ]

    def offered(
        self, every: tuple[str, str], options: list[tuple[str, str]]
    ) -> list[tuple[str, str]]:
        """Return the choices of a field: all first, or nothing."""
        return [every, *options]

    def record(self, contact_id: str) -> bool:
        """Record the decision as REST does; return whether it was, else with the fields' errors."""
        if not self.is_valid():
            return False
        cleaned = self.cleaned_data
        body: dict[str, object] = {
            "contactId": contact_id,
            "channel": cleaned["channel"],
            "category": cleaned["category"],
            "status": self.status,
            "source": ConsentEntry.Source.ADMIN.value,
            "evidence": self.stated_evidence,
        }
        if cleaned["occurred_at"]:
            body["occurredAt"] = cleaned["occurred_at"].isoformat()
        try:
            (result,) = entries.record_for(
                self.viewer.organization_id, [parse(CONSENT, body)], self.viewer.user.get_username()
            )
        except errors.ApiError as error:
            result = error
        if isinstance(result, errors.ApiError):
            self._refuse(result)
            return False
        return True

    @property
    def stated_evidence(self) -> dict[str, str]:
        """Return the evidence as the ledger keeps it."""
        cleaned = self.cleaned_data
        details = {name: cleaned[name] for name in ("kind", "url", "ip") if cleaned[name]}
        return {"note": cleaned["evidence"], **details}

    def _refuse(self, error: errors.ApiError) -> None:
        for detail in error.details:
            name = _FIELDS.get(detail.field, detail.field)
            self.add_error(name if name in self.fields else None, detail.message)
        if not error.details:
            self.add_error(None, error.message)


class OptOutForm(DecisionForm):
    status = "OPTED_OUT"


class OptInForm(DecisionForm):
    """Consent. Nothing is preselected: what a person agreed to must be chosen."""

    status = "OPTED_IN"
    kind_needed = True

    def offered(
        self, every: tuple[str, str], options: list[tuple[str, str]]
    ) -> list[tuple[str, str]]:
        return [("", gettext("Choose")), *options, every]
