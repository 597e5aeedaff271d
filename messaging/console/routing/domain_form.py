"""The form of a sender domain, new or stored."""

from typing import Any, ClassVar

from django import forms
from django.core.validators import RegexValidator
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from messaging.models import SenderDomain


class DomainForm(forms.ModelForm):
    """The sender of a domain, and what the mail provider says of the domain's records."""

    spf = forms.CharField(
        required=False,
        max_length=255,
        label=_("SPF mechanism"),
        help_text=_("Your mail provider names it, such as include:spf.example.com."),
        validators=[RegexValidator(r"^[!-~]+( [!-~]+)*$", _("Like include:spf.example.com."))],
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    dkim_selector = forms.CharField(
        required=False,
        max_length=63,
        label=_("DKIM selector"),
        help_text=_("The name before ._domainkey, as your mail provider shows it."),
        validators=[RegexValidator(r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$", _("Like s1."))],
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    class Meta:
        model = SenderDomain
        fields = ("domain", "local_part", "name", "is_default", "spf", "dkim_selector")
        labels: ClassVar[dict[str, Any]] = {
            "local_part": _("Part before the @"),
            "name": _("Sender name"),
            "is_default": _("Default domain"),
        }
        help_texts: ClassVar[dict[str, Any]] = {
            "domain": _("Like news.example.com. You can't change it later."),
            "local_part": _("Requests can name another one."),
            "name": _("Recipients see it. Requests can name another one."),
            "is_default": _("Messages that name no domain come from it."),
        }
        widgets: ClassVar[dict[str, Any]] = {
            name: forms.TextInput(attrs={"autocomplete": "off"})
            for name in ("domain", "local_part", "name")
        } | {"is_default": forms.CheckboxInput()}

    def __init__(
        self, row: SenderDomain, suggested_spf: str, data: QueryDict | None = None, **initial: Any
    ) -> None:
        initial |= {"spf": row.spf or suggested_spf}
        super().__init__(data, instance=row, initial=initial, label_suffix="", auto_id="domain_%s")
        if row.pk:
            del self.fields["domain"]  # another domain isn't the one that was verified

    def validate_unique(self) -> None:
        """Check that the organization, which is no field, has the domain only once."""
        super().validate_unique()
        rows = SenderDomain.objects.filter(
            organization_id=self.instance.organization_id, domain=self.instance.domain
        )
        if "domain" in self.fields and rows.exists():
            self.add_error("domain", _("Your organization has this domain already."))
