"""Pages for consent and suppressions."""

from typing import Any, ClassVar, cast

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from messaging.admin.console_lists import ListInConsole, to_console
from messaging.admin.imports import ImportPages
from messaging.consent import gate_lock, suppressions
from messaging.models import ConsentEntry, Suppression
from rme.core import errors
from rme.core.addresses import phone_problem, phone_readings, valid_phone
from rme.tenants.access.roles import Permission, organizations_for
from rme.tenants.admin.base import TenantAdmin
from rme.tenants.admin.choices import TenantForm


class _CheckedRequest(HttpRequest):
    """A request whose contact was looked up; `contact_problem` is empty if it exists."""

    contact_problem: str


class ContactForm(TenantForm):
    """A form with the id of a contact, which must exist."""

    contact_problem: ClassVar[str] = ""
    """The problem of the contact, if any: its platform is queried before the form is validated."""

    def check_contact(self) -> None:
        """Report the problem of the contact at its field."""
        if self.contact_problem:
            self.add_error("contact_id", self.contact_problem)


class PersonAdmin(TenantAdmin):
    """A page whose form holds the id of a contact of any platform."""

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: object = None,
    ) -> HttpResponse:
        """Look up the contact before Django's view opens its transaction."""
        if request.method == "POST" and object_id is None:
            # Django keeps no other place for what belongs to a request.
            checked = cast(_CheckedRequest, request)
            checked.contact_problem = self._contact_problem(request)
        return super().changeform_view(request, object_id, form_url, extra_context)

    def _contact_problem(self, request: HttpRequest) -> str:
        contact_id = request.POST.get("contact_id", "").strip()
        organization_id = request.POST.get("organization", "")
        organizations = organizations_for(request, self.write_permission).values_list(
            "pk", flat=True
        )
        if organization_id not in organizations:
            return ""  # the form refuses it
        try:
            unknown_ids = suppressions.missing_contacts(organization_id, [contact_id])
        except errors.Unavailable as error:
            return error.message
        return "There is no such contact." if unknown_ids else ""

    def get_form(
        self, request: HttpRequest, obj: object = None, change: bool = False, **kwargs: object
    ) -> Any:
        form = super().get_form(request, obj, change, **kwargs)  # a class made for this request
        form.contact_problem = getattr(request, "contact_problem", "")
        return form


@admin.register(ConsentEntry)
class ConsentEntryAdmin(ListInConsole, TenantAdmin):
    """An entry of the ledger, which is never changed or deleted. The console records new ones."""

    read_permission: Permission = Permission.SEE_PEOPLE
    write_permission: Permission = Permission.CHANGE_PEOPLE
    console_list = "consent"
    fields = (
        *("organization", "contact_id", "channel", "category", "status", "evidence"),
        *("occurred_at", "source", "recorded_at", "recorded_by", "digest", "previous"),
    )
    readonly_fields = fields

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: object = None
    ) -> HttpResponse:
        """Lead to the console, where a person is searched and the evidence has fields."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        return to_console(request, self.console_list, self.write_permission)

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


class SuppressionForm(ContactForm):
    """An entry of the suppression list, with its address in the normal form."""

    def clean(self) -> dict[str, Any]:
        """Require an address or a contact id, not both."""
        cleaned = super().clean()
        if self.instance.pk and not self.instance._state.adding:
            return cleaned  # address and contact are fixed
        address = cleaned.get("address", "")
        if bool(address) == bool(cleaned.get("contact_id")):
            raise ValidationError("Give an address or a contact id, not both.")
        self.check_contact()
        if address:
            organization = self.own_organization()
            region = organization.region if organization else None
            normal = suppressions.normalize_address(cleaned.get("channel", ""), address, region)
            is_national = "@" not in address and not address.lstrip().startswith("+")
            if len(phone_readings(address, region)) > 1:
                self.add_error("address", f"This {phone_problem(address, region)}.")
            elif normal is None or (is_national and valid_phone(address, region) is None):
                self.add_error("address", "This is not an address of that channel.")
            cleaned["address"] = normal or address
        return cleaned


@admin.register(Suppression)
class SuppressionAdmin(ImportPages, PersonAdmin):
    read_permission: Permission = Permission.SEE_PEOPLE
    write_permission: Permission = Permission.CHANGE_PEOPLE
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
    list_filter = ("reason", "channel", "source")
    search_fields = ("address", "contact_id")
    ordering: ClassVar[tuple[str, ...]] = ("-id",)
    fields = ("organization", "channel", "address", "contact_id", "reason", "note", "expires_at")
    fixed_fields = ("organization", "channel", "address", "contact_id", "reason")
    delete_confirmation_template = "admin/rme/lift.html"
    list_before_template = "admin/rme/test_entries_link.html"

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> object:
        fixed = super().get_readonly_fields(request, obj)
        # An expiry in the past would lift it without a reason.
        return (*fixed, "expires_at") if obj and obj.reason in suppressions.PROTECTED else fixed

    def save_model(
        self, request: HttpRequest, obj: Suppression, form: ModelForm, change: bool
    ) -> None:
        """Save the entry under the gate lock, which lasts until the page's transaction ends."""
        gate_lock.take_exclusive([obj.organization_id])
        super().save_model(request, obj, form, change)
        suppressions.report_saved(Suppression.objects.filter(pk=obj.pk), new=not change)

    def delete_model(self, request: HttpRequest, obj: Suppression) -> None:
        suppressions.remove(Suppression.objects.filter(pk=obj.pk))

    def get_actions(self, request: HttpRequest) -> object:
        """Remove the deletion of several: each protected entry needs a reason."""
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: object = None
    ) -> HttpResponse:
        """Require a reason to lift a complaint or a STOP; the log keeps it."""
        row = self.get_object(request, object_id)
        needed = row.reason in suppressions.PROTECTED
        if request.method == "POST" and needed and not self.reason(request):
            messages.error(
                request, f"{row.reason} is the recipient's decision: give a reason for lifting it."
            )
            return HttpResponseRedirect(request.path)
        return super().delete_view(request, object_id, {"reason_needed": needed})
