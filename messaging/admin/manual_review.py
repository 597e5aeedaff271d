"""Manual review: the page of deliveries held with an unknown outcome."""

from collections import defaultdict
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from unfold.widgets import UnfoldAdminTextInputWidget

from messaging.delivery import manual_review
from messaging.delivery.manual_review import Decision
from messaging.models import Delivery
from rme.tenants import audit
from rme.tenants.admin.base import ReadOnly, TenantAdmin
from rme.tenants.admin.lists import TenantList
from rme.tenants.roles import Permission, organizations_for

MAX_SELECTED = 500
"""At most this many are decided by one form, which has their ids. `decide_held` decides more."""

TITLES = {Decision.SEND_AGAIN: "Send again", Decision.GIVE_UP: "Give up"}
QUESTIONS = {
    Decision.SEND_AGAIN: "go to the provider once more. If it accepted them the first time, their "
    "recipients get them twice. Consent, suppressions and pauses are checked again, and the time "
    "after which they expire starts again.",
    Decision.GIVE_UP: "end as FAILED and are not sent again. They may have arrived nevertheless: "
    "a late receipt still makes them DELIVERED.",
}


class HeldList(TenantList):
    """A page of held deliveries. Once decided, a delivery keeps its own page and history."""

    def get_queryset(
        self, request: HttpRequest, exclude_parameters: object = None
    ) -> QuerySet[Delivery]:
        rows: QuerySet[Delivery] = super().get_queryset(request, exclude_parameters)
        return rows.filter(manual_review.HELD)


class DecisionReasonForm(forms.Form):
    """The reason of a decision."""

    reason = forms.CharField(
        max_length=500,
        widget=UnfoldAdminTextInputWidget,
        help_text="Kept with the message's events and in the audit. Name no recipient.",
    )


@admin.register(Delivery)
class HeldAdmin(ReadOnly, TenantAdmin):
    read_permission: Permission = Permission.SEE_MESSAGES
    write_permission: Permission = Permission.OPERATE
    list_display = (
        "id",
        "updated_at",
        "channel",
        "category",
        "contact_id",
        "provider",
        "detail",
        "message",
        "organization_id",
    )
    list_filter = ("channel",)
    search_fields = ("contact_id",)
    search_help_text = "A contact's id."
    ordering = ("-id",)
    sortable_by = ()
    fields: ClassVar[tuple[str, ...]] = (
        "id",
        "organization_id",
        "message",
        "contact_id",
        "category",
        "channel",
        "provider",
        "status",
        "reason",
        "detail",
        "expires_at",
        "updated_at",
    )
    readonly_fields = fields
    actions: ClassVar[list[str]] = ["send_again", "give_up"]

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[HeldList]:
        return HeldList

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        title = "Manual review: deliveries with an unknown outcome"
        return super().changelist_view(request, {"title": title, **(extra_context or {})})

    @admin.display(description="message")
    def message(self, row: Delivery) -> str:
        url = reverse("admin:messaging_message_change", args=[row.message_id])
        return format_html('<a class="text-primary-600" href="{}">{}</a>', url, row.message_id)

    def has_decide_permission(self, request: HttpRequest) -> bool:
        return self.may(request, self.write_permission, None)

    @admin.action(description=TITLES[Decision.SEND_AGAIN], permissions=["decide"])
    def send_again(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> HttpResponse | None:
        """Send the selected deliveries again."""
        return self._decide(request, queryset, Decision.SEND_AGAIN)

    @admin.action(description=TITLES[Decision.GIVE_UP], permissions=["decide"])
    def give_up(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> HttpResponse | None:
        """Stop trying to send the selected deliveries."""
        return self._decide(request, queryset, Decision.GIVE_UP)

    def _decide(
        self, request: HttpRequest, queryset: QuerySet[Delivery], decision: Decision
    ) -> HttpResponse | None:
        """Show the form for a reason; decide once it is submitted."""
        # a user may be an editor in one organization and a reader in another
        own = organizations_for(request, self.write_permission).values("pk")
        rows = queryset.filter(organization_id__in=own).order_by("pk")
        chosen = list(rows.values_list("organization_id", "pk")[:MAX_SELECTED])
        form = DecisionReasonForm(request.POST if "reason" in request.POST else None)
        if not form.is_valid():
            noun = "delivery" if len(chosen) == 1 else "deliveries"
            statement = f"{len(chosen)} chosen {noun}: they {QUESTIONS[decision]}"
            context = {"title": TITLES[decision], "statement": statement, "form": form}
            keys = [str(key) for _, key in chosen]
            return self.show(
                request, "decide", None, chosen=keys, action=decision.lower(), **context
            )
        by_organization: dict[str, list[UUID]] = defaultdict(list)
        for organization_id, key in chosen:
            by_organization[organization_id].append(key)
        count = sum(
            len(manual_review.decide(
                organization_id, keys, decision,
                reason=form.cleaned_data["reason"], actor=audit.actor_of(request),
            ))
            for organization_id, keys in by_organization.items()
        )  # fmt: skip
        self._report(
            request, decision, count, len(request.POST.getlist("_selected_action")) - count
        )
        return None

    def _report(self, request: HttpRequest, decision: Decision, count: int, left: int) -> None:
        messages.success(request, f"{TITLES[decision]}: {count}.")
        if left:
            messages.warning(request, f"{left} were already decided, by a person or by a receipt.")
