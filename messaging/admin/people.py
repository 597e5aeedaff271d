"""Pages for consent and suppressions."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from messaging import consent
from messaging.models import ConsentEntry, Suppression
from rme.core import addresses
from rme.tenants.admin_base import TenantAdmin

PROTECTED = {"COMPLAINT", "STOP"}


@admin.register(ConsentEntry)
class ConsentEntryAdmin(TenantAdmin):
    """The ledger: lines are added, never changed, never deleted."""

    list_display = ("contact_id", "channel", "category", "status", "source", "occurred_at")
    list_filter = ("status", "channel", "source")
    search_fields = ("contact_id", "category")
    fields = ("organization", "contact_id", "channel", "category", "status", "evidence")
    readonly_fields = ("source", "occurred_at", "recorded_at", "recorded_by", "digest", "previous")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*self.fields, *self.readonly_fields) if obj else (*self.fields, "occurred_at")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.readonly_fields if obj else ()

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_model(
        self, request: HttpRequest, obj: ConsentEntry, form: ModelForm, change: bool
    ) -> None:
        decision = consent.Decision(
            contact_id=obj.contact_id,
            channel=obj.channel,
            category=obj.category.upper(),
            status=obj.status,
            source=ConsentEntry.Source.ADMIN,
            occurred_at=obj.occurred_at,
            evidence=obj.evidence,
            recorded_by=request.user.get_username(),
        )
        (obj.pk,) = consent.record(obj.organization_id, [decision])


class SuppressionForm(ModelForm):
    """Addresses are brought into their normal form, which is what sending compares."""

    class Meta:
        model = Suppression
        fields = (
            "organization",
            "channel",
            "address",
            "contact_id",
            "reason",
            "note",
            "expires_at",
        )

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        address, channel = given.get("address", ""), given.get("channel")
        if bool(address) == bool(given.get("contact_id")):
            raise ValidationError("Give an address or a contact id, not both.")
        if address:
            organization = given.get("organization")
            region = organization.region if organization else None
            phone = addresses.phone(address, region) if channel in ("SMS", "ALL") else None
            mail = addresses.email(address) if channel in ("EMAIL", "ALL") else None
            folded = mail or phone
            if folded is None:
                self.add_error("address", "This is no address of that channel.")
            else:
                given["address"] = folded
        return given


@admin.register(Suppression)
class SuppressionAdmin(TenantAdmin):
    form = SuppressionForm
    list_display = (
        "address",
        "contact_id",
        "channel",
        "reason",
        "source",
        "created_at",
        "expires_at",
    )
    list_filter = ("reason", "channel")
    search_fields = ("address", "contact_id")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        kept = ("organization", "channel", "address", "contact_id", "reason")
        return kept if obj else ()

    def get_form(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        if obj:
            kwargs["form"] = ModelForm
        return super().get_form(request, obj, **kwargs)

    def get_actions(self, request: HttpRequest) -> Any:
        """Take away deleting many at once: protected ones need a reason each."""
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        """Ask for a note before a complaint or a STOP is lifted: it is what the log keeps."""
        row = self.get_object(request, object_id)
        if row is not None and row.reason in PROTECTED and not row.note:
            messages.error(
                request,
                f"{row.reason} is the recipient's own word: save a note that says why first.",
            )
            return HttpResponseRedirect("../change/")
        return super().delete_view(request, object_id, extra_context)
