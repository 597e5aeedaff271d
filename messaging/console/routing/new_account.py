"""A new provider account: the settings of its kind alone. It is saved as not active."""

from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.db import transaction
from django.db.models import Max
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect

from messaging import providers
from messaging.console import access
from messaging.console.access import Viewer
from messaging.console.routing import account_form, account_page, lanes
from messaging.models import ProviderAccount
from messaging.policy import organization_policy
from rme.core.provider import Provider
from rme.tenants import audit
from rme.tenants.access.roles import Permission
from rme.tenants.audit import Action

LAST = 32767
"""The largest priority."""


class NewAccountForm(account_form.SettingsForm):
    """An account that does not exist yet."""

    class Meta(account_form.SettingsForm.Meta):
        fields = ("name", "channel", "match", "rate")
        widgets: ClassVar[dict[str, Any]] = {
            "name": forms.TextInput(attrs={"autocomplete": "off"}),
            "match": forms.TextInput(),
            "rate": forms.NumberInput(),
        }

    def __init__(self, viewer: Viewer, data: Any = None) -> None:
        row = ProviderAccount(
            organization_id=viewer.organization_id,
            kind=self.kind,
            state=ProviderAccount.State.DRAFT,
        )
        provider = providers.REGISTRY[self.kind]
        initial = {"name": _free_name(viewer, provider), "channel": min(provider.channels)}
        super().__init__(data, instance=row, initial=initial, label_suffix="", auto_id="new_%s")
        for name in account_form.SECRET_FIELDS & self.fields.keys():
            text = str(self.fields[name].help_text)
            self.fields[name].help_text = text.replace(account_form.KEEPS_STORED, "")
        field = self.fields["channel"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(each, each) for each in sorted(provider.channels)]
        if len(provider.channels) == 1:
            field.widget = forms.HiddenInput()

    def clean_name(self) -> str:
        """Check that no other account of the organization has the name."""
        name = str(self.cleaned_data["name"])
        if _named(self.instance.organization_id, name):
            raise forms.ValidationError("There is an account of this name.")
        return name


def _named(organization_id: str, name: str) -> bool:
    rows = ProviderAccount.objects.filter(organization_id=organization_id, name=name)
    return rows.exists()


def _free_name(viewer: Viewer, provider: type[Provider]) -> str:
    """Return a name for a new account, such as smtp-2."""
    rows = ProviderAccount.objects.filter(organization_id=viewer.organization_id)
    used_names = set(rows.filter(name__startswith=provider.kind).values_list("name", flat=True))
    numbers = range(2, len(used_names) + 3)
    return next(
        each
        for each in (provider.kind, *(f"{provider.kind}-{number}" for number in numbers))
        if each not in used_names
    )


@access.page_for(Permission.SEE_SETTINGS)
def show(request: HttpRequest, viewer: Viewer, provider_kind: str) -> HttpResponseBase:
    """Return the form of a kind; a POST saves the account, and checks it if that is asked for."""
    viewer.require(Permission.CHANGE_SETTINGS)
    provider = providers.REGISTRY.get(provider_kind)
    if provider is None:
        raise Http404
    form_class = account_form.form_for(provider_kind, NewAccountForm)
    form = form_class(viewer, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        row = _save(viewer, form)
        if request.POST.get("do") == "check":
            account_page.check(request, viewer, row)
        else:
            messages.success(request, f"{row.name} is saved, and not active yet.")
        return HttpResponseRedirect(lanes.account_url(row))
    settings, further_fields = account_form.divided(form)
    return access.show(
        request,
        viewer,
        "routing/new",
        f"Add a provider: {provider.label}",
        others_page="console:providers",
        form=form,
        settings=settings,
        others_fields=further_fields,
        back=lanes.url(viewer),
    )


def _save(viewer: Viewer, form: NewAccountForm) -> ProviderAccount:
    """Store the account as the last one of its channel; with audit."""
    row: ProviderAccount = form.instance
    same_channel = ProviderAccount.objects.filter(
        organization_id=row.organization_id, channel=row.channel
    )
    last = same_channel.aggregate(last=Max("priority"))["last"]
    row.priority = min(LAST, last + lanes.STEP) if last is not None else lanes.STEP
    with transaction.atomic():
        row.save()
        changes = audit.of_form(form, account_form.SECRET_FIELDS)
        access.note(viewer, Action.ADDED, row, changes=changes)
    organization_policy.forget(row.organization_id)
    return row
