"""Pages for messages with their deliveries, attempts and events, for reading only.

The tables are partitioned and large: lists are not counted, and every query names the organization.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, ClassVar, TypeVar

from django.contrib import admin
from django.db.models import Exists, Model, OuterRef, Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from unfold.paginator import InfinitePaginator

from messaging.models import (
    Attempt,
    Category,
    Delivery,
    Message,
    MessageContent,
    ProviderAccount,
    derived_events,
)
from messaging.models.delivery_lookup import of_contact, of_message, of_messages
from messaging.models.statuses import Status, aggregate
from messaging.policy.organization_policy import BUILT_IN
from messaging.providers.simulator import Simulator
from messaging.reports import trace
from rme.core import ids
from rme.core.channels import Channel
from rme.core.db.clock import iso
from rme.tenants import audit
from rme.tenants.admin.base import ReadOnly, TenantAdmin
from rme.tenants.admin.lists import TenantList
from rme.tenants.masking import masked_in
from rme.tenants.roles import Permission, organizations_for

SIMULATOR = Simulator.kind
_STEP = (
    "step",
    "channel",
    "result",
    "provider",
    "entry",
    "until",
    "detail",
    "latency_ms",
)
Row = TypeVar("Row", bound=Model)
ROWS = 500
"""At most this many rows of a message are shown."""


def _having(rows: QuerySet[Message], *wanted: Q, **fields: object) -> QuerySet[Message]:
    """Return the messages that have such a delivery."""
    deliveries = Delivery.objects.filter(
        *wanted,
        of_message(OuterRef("pk")),
        organization_id=OuterRef("organization_id"),
        **fields,
    )
    return rows.filter(Exists(deliveries))


class DeliveryColumnFilter(admin.SimpleListFilter):
    """Base class of filters by a column of the deliveries."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Message]) -> QuerySet[Message]:
        column = {self.parameter_name: self.value()}
        return _having(queryset, **column) if self.value() else queryset


class StatusFilter(DeliveryColumnFilter):
    title = "status of a recipient"
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, str]]:
        return [(status.value, status.value.title()) for status in Status]


class ChannelFilter(DeliveryColumnFilter):
    title = "channel"
    parameter_name = "channel"

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, str]]:
        return [(channel.value, channel.value) for channel in Channel]


class ProviderFilter(admin.SimpleListFilter):
    """By provider account. All simulator accounts are one choice, whatever their names."""

    title = "provider"
    parameter_name = "provider"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        own = organizations_for(request, model_admin.read_permission).values("pk")
        rows = ProviderAccount.objects.filter(organization_id__in=own).exclude(name=SIMULATOR)
        names = rows.order_by("name").values_list("name", flat=True).distinct()[:200]
        return [(SIMULATOR, "Simulator (outbox)"), *((name, name) for name in names)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Message]) -> QuerySet[Message]:
        if not self.value():
            return queryset
        accounts = ProviderAccount.objects.filter(kind=self.value()).values("pk")
        simulated = Q(account_id__in=accounts) if self.value() == SIMULATOR else Q()
        return _having(queryset, Q(provider=self.value()) | simulated)


class CategoryFilter(admin.SimpleListFilter):
    """By stored category. To collect them from the messages would read the whole table."""

    title = "category"
    parameter_name = "category"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        own = organizations_for(request, model_admin.read_permission).values("pk")
        names = Category.objects.filter(organization_id__in=own).values_list("name", flat=True)
        return [(name, name) for name in sorted({*BUILT_IN, *names.distinct()[:200]})]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Message]) -> QuerySet[Message]:
        return queryset.filter(category=self.value()) if self.value() else queryset


class AgeFilter(admin.SimpleListFilter):
    """By age. Ids sort by time, so whole partitions are skipped."""

    title = "age"
    parameter_name = "hours"

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, str]]:
        return [("1", "last hour"), ("24", "last day"), ("168", "last 7 days")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Message]) -> QuerySet[Message]:
        if self.value() not in ("1", "24", "168"):
            return queryset
        since = timezone.now() - timedelta(hours=int(self.value() or 0))
        return queryset.filter(pk__gte=ids.at_least(since))


class MessageList(TenantList):
    """A page of messages, with the statuses of all recipients read by one query."""

    result_list: Any

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        rows = list(self.result_list)
        statuses: dict[Any, list[str]] = {row.pk: [] for row in rows}
        for message_id, status in Delivery.objects.filter(
            of_messages(list(statuses)), organization_id__in={row.organization_id for row in rows}
        ).values_list("message_id", "status"):
            statuses[message_id].append(status)
        for row in rows:
            row.statuses = statuses[row.pk]
        self.result_list = rows


@admin.register(Message)
class MessageAdmin(ReadOnly, TenantAdmin):
    read_permission: Permission = Permission.SEE_MESSAGES
    write_permission: Permission = Permission.OPERATE
    list_display = (
        "id",
        "created_at",
        "recipients",
        "status",
        "category",
        "template",
        "test",
        "organization_id",
    )
    list_filter = (StatusFilter, ChannelFilter, ProviderFilter, CategoryFilter, AgeFilter, "test")
    search_fields = ("id",)
    search_help_text = "A message's id, or a contact's."
    ordering = ("-id",)
    sortable_by = ()
    paginator = InfinitePaginator
    fields: ClassVar[tuple[str, ...]] = (
        "id",
        "organization_id",
        "created_at",
        "category",
        "channels_to_choose",
        "strategy_or_usual",
        "fallback_after",
        "template",
        "language",
        "test",
        "deliveries",
        "trace",
        "attempts",
        "events",
    )
    contents: ClassVar[tuple[str, ...]] = ("metadata", "content")
    """Fields that need SEE_CONTENTS."""
    readonly_fields = (*fields, *contents)

    def get_fields(self, request: HttpRequest, obj: object = None) -> object:
        readable = self.may(request, Permission.SEE_CONTENTS, obj)
        return (*self.fields, *self.contents) if readable else self.fields

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        """Return a message; its page masks addresses for who may not see whole ones."""
        row = super().get_object(request, object_id, from_field)
        row.hidden = []
        if not self.may(request, Permission.SEE_ADDRESSES, row):
            row.hidden = list(_deliveries(row).values_list("address", flat=True)[:ROWS])
        return row

    def render_change_form(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Return the page of a message; that its contents are read is recorded."""
        row = kwargs.get("obj")
        if row is not None and self.may(request, Permission.SEE_CONTENTS, row):
            (entry,) = self.entries_about(row, audit.Action.READ, label="", text="all recipients")
            audit.record_read(audit.actor_of(request), entry)
        return super().render_change_form(request, *args, **kwargs)

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[MessageList]:
        return MessageList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Message], search_term: str
    ) -> tuple[QuerySet[Message], bool]:
        """Find a message by its id or a contact's id, both exactly."""
        term = search_term.strip()
        if not term:
            return queryset, False
        found = Delivery.objects.filter(of_contact(term))
        if not request.user.is_superuser:
            allowed = organizations_for(request, self.read_permission).values("pk")
            found = found.filter(organization_id__in=allowed)
        identifier = ids.parse(term)
        own = queryset.filter(pk__in=found.values("message_id"))
        return (own | queryset.filter(pk=identifier) if identifier else own), False

    @admin.display(description="channels")
    def channels_to_choose(self, row: Any) -> str:
        deliveries = _deliveries(row).values_list("channel", flat=True)[:1]
        return ", ".join(row.channels or deliveries)

    @admin.display(description="strategy")
    def strategy_or_usual(self, row: Any) -> str:
        return row.strategy or Message.USUAL_STRATEGY

    @admin.display(description="recipients")
    def recipients(self, row: Any) -> int:
        return len(row.statuses)

    @admin.display(description="status")
    def status(self, row: Any) -> str:
        return aggregate(row.statuses).value if row.statuses else "–"

    @admin.display(description="recipients")
    def deliveries(self, row: Any) -> str:
        names = ("contact_id", "status", "channel", "address", "provider", "reason", "detail")
        rows = _deliveries(row).order_by("position")
        return _table((*names, "waiting", "scheduled_for", "due_at", "tries"), rows, row.hidden)

    @admin.display(description="trace")
    def trace(self, row: Any) -> str:
        rows = [
            [recipient.contact_id, iso(step.at), *(getattr(step, name) for name in _STEP)]
            for recipient in trace.of_record(trace.record_of(row.pk))
            for step in recipient.steps
        ]
        return _shown(("contact", "at", *_STEP), rows[:ROWS], row.hidden)

    @admin.display(description="attempts")
    def attempts(self, row: Any) -> str:
        names = ("started_at", "channel", "provider", "device_id", "outcome", "reason")
        names += ("full_provider_id", "latency_ms", "fence")
        # attempts have an index by delivery, not by message
        deliveries = list(_deliveries(row).values_list("pk", flat=True)[:ROWS])
        rows = Attempt.objects.filter(
            delivery_id__in=deliveries, organization_id=row.organization_id
        ).order_by("id")[:ROWS]
        shown = [[getattr(attempt, name) for name in names] for attempt in rows]
        return _shown([name.removeprefix("whole_") for name in names], shown, row.hidden)

    @admin.display(description="events")
    def events(self, row: Any) -> str:
        names = ("at", "type", "channel", "provider", "detail", "delivery_id")
        deliveries = _deliveries(row).values_list("pk", flat=True)
        events = derived_events.of_message(row.pk, deliveries)
        rows = [[getattr(event, name) for name in names] for event in events[:ROWS]]
        return _shown(names, rows, row.hidden)

    @admin.display(description="content as accepted")
    def content(self, row: Message) -> str:
        rows = MessageContent.objects.filter(pk=row.pk, organization_id=row.organization_id)
        body = rows.values_list("body", flat=True).first()
        shown = "No longer kept." if body is None else body
        return format_html('<pre class="whitespace-pre-wrap">{}</pre>', shown)


def _deliveries(message: Message) -> QuerySet[Delivery]:
    """Return the deliveries of a message."""
    return Delivery.objects.filter(of_message(message.pk), organization_id=message.organization_id)


def _table(names: tuple[str, ...], rows: QuerySet[Row], hidden: Sequence[str]) -> str:
    """Return the rows of a query as an HTML table."""
    return _shown(names, rows.values_list(*names)[:ROWS], hidden)


def _shown(names: Sequence[str], rows: Iterable[Sequence[object]], hidden: Sequence[str]) -> str:
    """Return rows as an HTML table; the hidden addresses are masked wherever they occur."""
    head = format_html_join(
        "", '<th class="text-left pr-4">{}</th>', ((name.replace("_", " "),) for name in names)
    )
    body = format_html_join("", "<tr>{}</tr>", ((_cells(values, hidden),) for values in rows))
    table = format_html("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>", head, body)
    return format_html('<div class="overflow-x-auto">{}</div>', table)


def _cells(values: Sequence[object], hidden: Sequence[str]) -> str:
    texts = ((masked_in("" if value is None else value, hidden),) for value in values)
    return format_html_join("", '<td class="pr-4 align-top">{}</td>', texts)
