"""The page for contacts of the embedded platform, with merging of two that are one person."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from unfold.widgets import UnfoldAdminRadioSelectWidget, UnfoldAdminTextInputWidget

from messaging.console.people import contact_merge
from rme.crm.admin.pages import ContactAdmin
from rme.crm.models import Contact
from rme.tenants import audit
from rme.tenants.access.roles import organizations_for

admin.site.unregister(Contact)  # extended here: consent and messages follow a merge


class MergeForm(forms.Form):
    """Which of two contacts stays, and why they are one person."""

    stays = forms.ChoiceField(label="Stays", widget=UnfoldAdminRadioSelectWidget())
    reason = forms.CharField(
        max_length=500,
        widget=UnfoldAdminTextInputWidget,
        help_text="Kept in the audit and with the decisions on consent.",
    )

    def __init__(self, rows: list[Contact], *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        choices = [(str(row.pk), f"{row}, {row.email or row.mobile or row.pk}") for row in rows]
        field: Any = self.fields["stays"]
        field.choices, field.initial = choices, choices[0][0]


@admin.register(Contact)
class MergingContactAdmin(ContactAdmin):
    actions: ClassVar[list[str]] = ["merge"]

    @admin.action(description="Merge two", permissions=["change"])
    def merge(self, request: HttpRequest, queryset: QuerySet[Contact]) -> HttpResponse | None:
        """Show what merging two contacts would do; merge them once it is confirmed."""
        organizations = organizations_for(request, self.write_permission)
        rows = list(queryset.filter(organization__in=organizations).order_by("pk")[:3])
        if len(rows) != 2 or rows[0].organization_id != rows[1].organization_id:
            text = "Choose exactly two contacts of one organization."
            messages.warning(request, text)
            return None
        form = MergeForm(rows, request.POST if "stays" in request.POST else None)
        confirmed = form.is_valid()
        stays_id = request.POST.get("stays", str(rows[0].pk))
        stays, goes = sorted(rows, key=lambda row: str(row.pk) != stays_id)
        if confirmed and request.POST.get("do") == "merge":
            contact_merge.merge(
                stays,
                goes,
                actor=audit.actor_of(request),
                reason=form.cleaned_data["reason"],
            )
            messages.success(request, f"{goes} is merged into {stays}.")
            return None
        preview = contact_merge.preview(stays, goes)
        context: dict[str, Any] = {
            "chosen": [str(row.pk) for row in rows],
            "stays": stays,
            "goes": goes,
            "found": preview,
            "form": form,
        }
        return self.show(request, "merge", None, title="Merge two contacts", **context)
