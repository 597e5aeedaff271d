"""The form of a new organization, for superusers: its name, and the domain that it sends from."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from messaging.console import access
from messaging.models import SenderDomain
from rme.core import addresses
from rme.core.db import clock
from rme.tenants import audit
from rme.tenants.admin.offered import offer_settings
from rme.tenants.audit import Action
from rme.tenants.models import Organization
from rme.tenants.organizations import latest


class NewOrganizationForm(forms.ModelForm):
    """An organization, and its first sender domain, which a superuser confirms."""

    domain = forms.CharField(
        required=False,
        max_length=253,
        label=gettext_lazy("Sender domain"),
        help_text=gettext_lazy(
            "Email comes from it. By naming it here you confirm that the organization owns it."
        ),
        widget=forms.TextInput({"autocomplete": "off", "placeholder": "news.example.com"}),
    )

    class Meta:
        model = Organization
        fields = ("name", "zone", "language", "region")
        labels: ClassVar[dict[str, Any]] = {
            "name": gettext_lazy("Organization name"),
            "zone": gettext_lazy("Time zone"),
            "language": gettext_lazy("Language"),
            "region": gettext_lazy("Country"),
        }
        help_texts: ClassVar[dict[str, Any]] = dict.fromkeys(fields, "")
        widgets: ClassVar[dict[str, Any]] = {"name": forms.TextInput({"autocomplete": "off"})}

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data, label_suffix="", auto_id="organization_%s")
        offer_settings(self)
        self.order_fields(("name", "domain"))

    def clean_domain(self) -> str:
        """Return the domain in A-labels."""
        typed: str = self.cleaned_data["domain"]
        domain = addresses.domain(typed) if typed else ""
        if domain is None:
            message = _("This is not a domain name. Use one like news.example.com.")
            raise forms.ValidationError(message)
        return domain


def show(request: HttpRequest) -> HttpResponseBase:
    """Return the form; a POST adds the organization and leads to its providers."""
    if not request.user.is_superuser:
        raise PermissionDenied
    form = NewOrganizationForm(request.POST if request.method == "POST" else None)
    if not form.is_valid():
        return access.show(request, None, "new_organization", _("New organization"), form=form)
    row = _add(request, form)
    latest.remember(request, row.pk)
    messages.success(request, _("{name} is added. Add a provider next.").format(name=row.name))
    return HttpResponseRedirect(reverse("console:providers", args=[row.pk]))


def _add(request: HttpRequest, form: NewOrganizationForm) -> Organization:
    """Store an organization with its domain, and audit both."""
    with transaction.atomic():
        row: Organization = form.save()
        entries = [audit.about(row, Action.ADDED, row.pk, changes=audit.of_form(form, ()))]
        if form.cleaned_data["domain"]:
            domain = SenderDomain.objects.create(
                organization=row,
                domain=form.cleaned_data["domain"],
                name=row.name,
                is_default=True,
                verified_at=clock.now(),
            )
            entries.append(audit.about(domain, Action.ADDED, row.pk, text="marked as verified"))
        audit.record(audit.actor_of(request), entries)
    return row


page = admin.site.admin_view(show)
