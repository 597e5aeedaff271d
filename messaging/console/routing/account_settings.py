"""The settings of a provider account, new or stored. A new one is saved as not active."""

from collections.abc import Mapping

from django.contrib import messages
from django.db import transaction
from django.db.models import Max
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from messaging import providers
from messaging.console import access
from messaging.console.access import Viewer
from messaging.console.routing import account_form, account_page, lane_forms, lanes, provider_kinds
from messaging.console.routing.account_form import AccountForm
from messaging.models import ProviderAccount
from messaging.policy import connection_check, organization_policy
from rme.tenants import audit
from rme.tenants.access.roles import Permission
from rme.tenants.audit import Action

LAST = 32767
"""The largest priority."""
COLUMNS = ("name", "match", "rate", "credentials", "checked_at", "check_problem")
"""What the form changes. Others change state and place meanwhile."""


def _free_name(viewer: Viewer, stem: str) -> str:
    """Return a name for a new account, such as smtp-2."""
    rows = ProviderAccount.objects.filter(organization_id=viewer.organization_id)
    used_names = set(rows.filter(name__startswith=stem).values_list("name", flat=True))
    numbers = range(2, len(used_names) + 3)
    names = (stem, *(f"{stem}-{number}" for number in numbers))
    return next(each for each in names if each not in used_names)


@access.page_for(Permission.SEE_SETTINGS)
def add(request: HttpRequest, viewer: Viewer, provider_kind: str) -> HttpResponseBase:
    """Return the form of a kind; a POST saves the account, and checks it if that is asked for."""
    viewer.require(Permission.CHANGE_SETTINGS)
    kind, service = provider_kinds.split(provider_kind)
    provider = providers.REGISTRY.get(kind)
    if provider is None:
        raise Http404
    row = ProviderAccount(
        organization_id=viewer.organization_id, kind=kind, state=ProviderAccount.State.DRAFT
    )
    initial = {
        "name": _free_name(viewer, service or kind),
        "channel": min(provider.channels),
        "service": service,
    }
    title = _("Add %(provider)s") % {"provider": provider_kinds.label(kind, service)}
    return _show(request, viewer, row, title, initial)


@access.page_for(Permission.SEE_SETTINGS)
def change(request: HttpRequest, viewer: Viewer, account_id: int) -> HttpResponseBase:
    """Return the form of a stored account; a POST saves it, and checks it if that is asked for."""
    viewer.require(Permission.CHANGE_SETTINGS)
    rows = ProviderAccount.objects.filter(organization_id=viewer.organization_id)
    row = get_object_or_404(rows, pk=account_id)
    if row.kind not in providers.REGISTRY:  # of a former release
        raise Http404
    return _show(request, viewer, row, _("Settings of %(account)s") % {"account": row.name}, {})


def _show(
    request: HttpRequest,
    viewer: Viewer,
    row: ProviderAccount,
    title: str,
    initial: Mapping[str, str],
) -> HttpResponseBase:
    data = request.POST if request.method == "POST" else None
    form = account_form.form_for(row.kind)(row, data, **initial)
    if form.is_valid():
        _save(viewer, form)
        if request.POST.get("do") == "activate":
            account_page.check_and_activate(request, viewer, row)
        elif request.POST.get("do") == "check":
            account_page.check(request, viewer, row)
        else:
            messages.success(request, _("%(account)s is saved.") % {"account": row.name})
        return HttpResponseRedirect(lanes.account_url(row))
    settings, further_fields = account_form.divided(form)
    return access.show(
        request,
        viewer,
        "routing/account_settings",
        title,
        is_new=row.pk is None,
        form=form,
        settings=settings,
        others_fields=further_fields,
        note=provider_kinds.SERVICE_NOTES.get(form.service, ""),
        back=lanes.account_url(row) if row.pk else lanes.url(viewer),
    )


def _save(viewer: Viewer, form: AccountForm) -> None:
    """Store an account, with audit: a new one as the last one of its channel."""
    row: ProviderAccount = form.instance
    changes = audit.of_form(form, account_form.SECRET_FIELDS)
    action = Action.CHANGED if row.pk else Action.ADDED
    if action is Action.ADDED:
        same_channel = ProviderAccount.objects.filter(
            organization_id=row.organization_id, channel=row.channel
        )
        last = same_channel.aggregate(last=Max("priority"))["last"]
        row.priority = min(LAST, last + lane_forms.STEP) if last is not None else lane_forms.STEP
    elif connection_check.has_other_settings(row):
        row.checked_at, row.check_problem = None, ""
    with transaction.atomic():
        row.save(update_fields=COLUMNS if action is Action.CHANGED else None)
        if changes:
            access.note(viewer, action, row, changes=changes)
    organization_policy.forget(row.organization_id)
