"""Pages for messages and what became of them: to read, never to change."""

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from unfold.paginator import InfinitePaginator

from messaging.models import Attempt, Delivery, Event, Message, MessageContent
from messaging.states import Status, aggregate
from rme.core import ids
from rme.tenants.admin_base import EDITORS, TenantAdmin, organizations_of
from rme.tenants.models import Membership


class StatusFilter(admin.SimpleListFilter):
    title = "status of a recipient"
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(status.value, status.value.title()) for status in Status]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Message]) -> QuerySet[Message]:
        if not self.value():
            return queryset
        wanted = Delivery.objects.filter(status=self.value())
        return queryset.filter(pk__in=wanted.values("message_id"))


class ProviderFilter(admin.SimpleListFilter):
    """The simulator's outbox is the messages that it took."""

    title = "provider"
    parameter_name = "provider"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("simulator", "Simulator (outbox)")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Message]) -> QuerySet[Message]:
        if not self.value():
            return queryset
        taken = Delivery.objects.filter(provider=self.value())
        return queryset.filter(pk__in=taken.values("message_id"))


@admin.register(Message)
class MessageAdmin(TenantAdmin):
    list_display = ("id", "created_at", "recipients", "status", "category", "template", "test")
    list_filter = (StatusFilter, ProviderFilter, "category", "test")
    search_fields = ("id",)
    search_help_text = "A message's id, or a contact's."
    ordering = ("-id",)
    paginator = InfinitePaginator
    fields: ClassVar[tuple[str, ...]] = (
        "id",
        "organization_id",
        "created_at",
        "category",
        "channels",
        "strategy",
        "template",
        "language",
        "metadata",
        "test",
        "deliveries",
        "attempts",
        "events",
    )
    readonly_fields = (*fields, "content")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        roles = EDITORS | {Membership.Role.VIEWER}
        own = organizations_of(request, roles)
        reads = request.user.is_superuser or (obj is not None and obj.organization_id in own)
        return (*self.fields, "content") if reads else self.fields

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Message], search_term: str
    ) -> tuple[QuerySet[Message], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        identifier = ids.parse(term)
        of_contact = Delivery.objects.filter(contact_id=term).values("message_id")
        found = queryset.filter(pk__in=of_contact)
        return (found | queryset.filter(pk=identifier) if identifier else found), False

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Read the recipients of the whole page by one query."""
        found = super().get_changelist_instance(request)
        rows = list(found.result_list)
        self._statuses: dict[Any, list[str]] = {row.pk: [] for row in rows}
        for message_id, status in Delivery.objects.filter(
            message_id__in=list(self._statuses)
        ).values_list("message_id", "status"):
            self._statuses[message_id].append(status)
        found.result_list = rows
        return found

    @admin.display(description="recipients")
    def recipients(self, row: Message) -> int:
        return len(self._statuses.get(row.pk, []))

    @admin.display(description="status")
    def status(self, row: Message) -> str:
        statuses = self._statuses.get(row.pk)
        return aggregate(statuses).value if statuses else "–"

    @admin.display(description="recipients")
    def deliveries(self, row: Message) -> str:
        names = ("contact_id", "status", "channel", "address", "provider", "reason", "detail")
        rows = Delivery.objects.filter(message_id=row.pk).order_by("position")
        return _table((*names, "waiting", "scheduled_for", "due_at", "tries"), rows)

    @admin.display(description="attempts")
    def attempts(self, row: Message) -> str:
        names = ("started_at", "channel", "provider", "outcome", "reason", "latency_ms", "fence")
        of_message = Delivery.objects.filter(message_id=row.pk).values("pk")
        return _table(names, Attempt.objects.filter(delivery_id__in=of_message).order_by("id"))

    @admin.display(description="events")
    def events(self, row: Message) -> str:
        rows = Event.objects.filter(message_id=row.pk).order_by("id")
        return _table(("at", "type", "channel", "provider", "detail"), rows)

    @admin.display(description="what was given to be sent")
    def content(self, row: Message) -> str:
        kept = MessageContent.objects.filter(pk=row.pk).first()
        return format_html("<pre class='whitespace-pre-wrap'>{}</pre>", kept.body if kept else "–")


def _table(names: tuple[str, ...], rows: QuerySet[Any]) -> str:
    """Show rows as a table."""
    head = format_html_join(
        "", '<th class="text-left pr-4">{}</th>', ((name.replace("_", " "),) for name in names)
    )
    body = format_html_join(
        "",
        "<tr>{}</tr>",
        (
            (
                format_html_join(
                    "",
                    '<td class="pr-4 align-top">{}</td>',
                    (("" if value is None else value,) for value in row),
                ),
            )
            for row in rows.values_list(*names)[:200]
        ),
    )
    return format_html("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>", head, body)
