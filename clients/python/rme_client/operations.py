"""The calls of the API as methods.

Generated from the OpenAPI description by `make clients`; not to be edited.
"""

from collections.abc import Iterator
from typing import Any, Literal

from rme_client.calls import Call, quoted
from rme_client.types import (
    BulkInput,
    BulkOutput,
    ConsentAnswer,
    ConsentBody,
    ConsentOutput,
    ConsentPageOutput,
    DetailedOutput,
    DeviceBody,
    DeviceListedOutput,
    DeviceOutput,
    DevicePageOutput,
    DeviceRegisteredOutput,
    EndpointInput,
    HealthOutput,
    HistoryOutput,
    MessageInput,
    PatchedEndpointUpdateInput,
    RenderInput,
    RenderOutput,
    ReplaceInput,
    ReplayInput,
    SendOutput,
    SentOrDryRun,
    SummaryOutput,
    SuppressionAddedOutput,
    SuppressionBody,
    SuppressionListOutput,
    SuppressionOutput,
    TemplatesOutput,
    VapidKeyOutput,
    VersionOutput,
    WebhookEndpointOutput,
    WebhookEndpointPageOutput,
    WebhookEndpointSecretOutput,
    WebhookReplayOutput,
    WebhookTestOutput,
)


class Operations:
    """The calls of the API as methods."""

    def _call(self, call: Call) -> Any:
        """Perform a call, and return its answer."""
        raise AssertionError(call)  # the client has its own

    def add_suppressions(self, body: SuppressionBody) -> SuppressionOutput | SuppressionAddedOutput:
        """Suppress an address or a contact, or up to 500."""
        answer: SuppressionOutput | SuppressionAddedOutput = self._call(
            Call("POST", "/suppressions", body=body)
        )
        return answer

    def cancel_message(self, message_id: str) -> SendOutput:
        """Cancel a scheduled message."""
        answer: SendOutput = self._call(Call("DELETE", f"/messages/{quoted(message_id)}"))
        return answer

    def create_webhook_endpoint(self, body: EndpointInput) -> WebhookEndpointSecretOutput:
        """Create a webhook endpoint."""
        answer: WebhookEndpointSecretOutput = self._call(
            Call("POST", "/webhook-endpoints", body=body)
        )
        return answer

    def delete_webhook_endpoint(self, endpoint_id: str) -> None:
        """Delete a webhook endpoint, with its queue."""
        answer: None = self._call(Call("DELETE", f"/webhook-endpoints/{quoted(endpoint_id)}"))
        return answer

    def get_health(self) -> HealthOutput:
        """Get the health of the service, its providers and their configuration."""
        answer: HealthOutput = self._call(Call("GET", "/health"))
        return answer

    def get_message(
        self, message_id: str, *, include: Literal["trace"] | None = None
    ) -> DetailedOutput:
        """Get a message with its events."""
        answer: DetailedOutput = self._call(
            Call("GET", f"/messages/{quoted(message_id)}", query={"include": include})
        )
        return answer

    def get_suppression(self, suppression_id: str) -> SuppressionOutput:
        """Read a suppression."""
        answer: SuppressionOutput = self._call(
            Call("GET", f"/suppressions/{quoted(suppression_id)}")
        )
        return answer

    def get_webhook_endpoint(self, endpoint_id: str) -> WebhookEndpointOutput:
        """Read a webhook endpoint."""
        answer: WebhookEndpointOutput = self._call(
            Call("GET", f"/webhook-endpoints/{quoted(endpoint_id)}")
        )
        return answer

    def lift_suppression(
        self,
        *,
        address: str | None = None,
        channel: Literal["EMAIL", "SMS", "PUSH", "ALL"] | None = None,
        contact_id: str | None = None,
        id: str | None = None,
    ) -> None:
        """Lift a suppression that the query names."""
        answer: None = self._call(
            Call(
                "DELETE",
                "/suppressions",
                query={"address": address, "channel": channel, "contactId": contact_id, "id": id},
            )
        )
        return answer

    def lift_suppression_by_id(self, suppression_id: str) -> None:
        """Lift a suppression."""
        answer: None = self._call(Call("DELETE", f"/suppressions/{quoted(suppression_id)}"))
        return answer

    def list_consent(
        self,
        *,
        category: str | None = None,
        channel: Literal["EMAIL", "SMS", "PUSH", "ALL"] | None = None,
        contact_id: str | None = None,
        cursor: str | None = None,
        history: bool | None = None,
        limit: int | None = None,
    ) -> ConsentPageOutput:
        """Read the consent ledger, newest first."""
        answer: ConsentPageOutput = self._call(
            Call(
                "GET",
                "/consent",
                query={
                    "category": category,
                    "channel": channel,
                    "contactId": contact_id,
                    "cursor": cursor,
                    "history": history,
                    "limit": limit,
                },
            )
        )
        return answer

    def iterate_consent(
        self,
        *,
        category: str | None = None,
        channel: Literal["EMAIL", "SMS", "PUSH", "ALL"] | None = None,
        contact_id: str | None = None,
        history: bool | None = None,
        limit: int | None = None,
    ) -> Iterator[ConsentOutput]:
        """Read the consent ledger, newest first: all pages, one item after another."""
        cursor: str | None = None
        while True:
            page = self.list_consent(
                category=category,
                channel=channel,
                contact_id=contact_id,
                history=history,
                limit=limit,
                cursor=cursor,
            )
            yield from page["consent"]
            cursor = page["nextCursor"]
            if cursor is None:
                return

    def list_devices(
        self, *, contact_id: str | None = None, cursor: str | None = None, limit: int | None = None
    ) -> DevicePageOutput:
        """Query the devices, newest first."""
        answer: DevicePageOutput = self._call(
            Call(
                "GET", "/devices", query={"contactId": contact_id, "cursor": cursor, "limit": limit}
            )
        )
        return answer

    def iterate_devices(
        self, *, contact_id: str | None = None, limit: int | None = None
    ) -> Iterator[DeviceListedOutput]:
        """Query the devices, newest first: all pages, one item after another."""
        cursor: str | None = None
        while True:
            page = self.list_devices(contact_id=contact_id, limit=limit, cursor=cursor)
            yield from page["devices"]
            cursor = page["nextCursor"]
            if cursor is None:
                return

    def list_messages(
        self,
        *,
        category: str | None = None,
        channel: Literal["EMAIL", "SMS", "PUSH"] | None = None,
        contact_id: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        since: str | None = None,
        status: Literal[
            "ACCEPTED",
            "SCHEDULED",
            "SENDING",
            "SENT",
            "DELIVERED",
            "FAILED",
            "BLOCKED",
            "CANCELLED",
            "EXPIRED",
            "UNKNOWN",
        ]
        | None = None,
        until: str | None = None,
    ) -> HistoryOutput:
        """Query the history, newest first."""
        answer: HistoryOutput = self._call(
            Call(
                "GET",
                "/messages",
                query={
                    "category": category,
                    "channel": channel,
                    "contactId": contact_id,
                    "cursor": cursor,
                    "limit": limit,
                    "since": since,
                    "status": status,
                    "until": until,
                },
            )
        )
        return answer

    def iterate_messages(
        self,
        *,
        category: str | None = None,
        channel: Literal["EMAIL", "SMS", "PUSH"] | None = None,
        contact_id: str | None = None,
        limit: int | None = None,
        since: str | None = None,
        status: Literal[
            "ACCEPTED",
            "SCHEDULED",
            "SENDING",
            "SENT",
            "DELIVERED",
            "FAILED",
            "BLOCKED",
            "CANCELLED",
            "EXPIRED",
            "UNKNOWN",
        ]
        | None = None,
        until: str | None = None,
    ) -> Iterator[SummaryOutput]:
        """Query the history, newest first: all pages, one item after another."""
        cursor: str | None = None
        while True:
            page = self.list_messages(
                category=category,
                channel=channel,
                contact_id=contact_id,
                limit=limit,
                since=since,
                status=status,
                until=until,
                cursor=cursor,
            )
            yield from page["messages"]
            cursor = page["nextCursor"]
            if cursor is None:
                return

    def list_suppressions(
        self,
        *,
        address: str | None = None,
        channel: Literal["EMAIL", "SMS", "PUSH", "ALL"] | None = None,
        contact_id: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        reason: Literal[
            "HARD_BOUNCE", "COMPLAINT", "STOP", "UNSUBSCRIBE", "INVALID_ADDRESS", "MANUAL"
        ]
        | None = None,
    ) -> SuppressionListOutput:
        """Query the suppressions, newest first."""
        answer: SuppressionListOutput = self._call(
            Call(
                "GET",
                "/suppressions",
                query={
                    "address": address,
                    "channel": channel,
                    "contactId": contact_id,
                    "cursor": cursor,
                    "limit": limit,
                    "reason": reason,
                },
            )
        )
        return answer

    def iterate_suppressions(
        self,
        *,
        address: str | None = None,
        channel: Literal["EMAIL", "SMS", "PUSH", "ALL"] | None = None,
        contact_id: str | None = None,
        limit: int | None = None,
        reason: Literal[
            "HARD_BOUNCE", "COMPLAINT", "STOP", "UNSUBSCRIBE", "INVALID_ADDRESS", "MANUAL"
        ]
        | None = None,
    ) -> Iterator[SuppressionOutput]:
        """Query the suppressions, newest first: all pages, one item after another."""
        cursor: str | None = None
        while True:
            page = self.list_suppressions(
                address=address,
                channel=channel,
                contact_id=contact_id,
                limit=limit,
                reason=reason,
                cursor=cursor,
            )
            yield from page["suppressions"]
            cursor = page["nextCursor"]
            if cursor is None:
                return

    def list_templates(
        self,
        *,
        channel: Literal["EMAIL", "SMS", "PUSH"] | None = None,
        cursor: str | None = None,
        language: str | None = None,
        limit: int | None = None,
        name: str | None = None,
        status: Literal["DRAFT", "ACTIVE", "ARCHIVED"] | None = None,
    ) -> TemplatesOutput:
        """List the versions of templates."""
        answer: TemplatesOutput = self._call(
            Call(
                "GET",
                "/templates",
                query={
                    "channel": channel,
                    "cursor": cursor,
                    "language": language,
                    "limit": limit,
                    "name": name,
                    "status": status,
                },
            )
        )
        return answer

    def iterate_templates(
        self,
        *,
        channel: Literal["EMAIL", "SMS", "PUSH"] | None = None,
        language: str | None = None,
        limit: int | None = None,
        name: str | None = None,
        status: Literal["DRAFT", "ACTIVE", "ARCHIVED"] | None = None,
    ) -> Iterator[VersionOutput]:
        """List the versions of templates: all pages, one item after another."""
        cursor: str | None = None
        while True:
            page = self.list_templates(
                channel=channel,
                language=language,
                limit=limit,
                name=name,
                status=status,
                cursor=cursor,
            )
            yield from page["templates"]
            cursor = page["nextCursor"]
            if cursor is None:
                return

    def list_webhook_endpoints(
        self, *, cursor: str | None = None, limit: int | None = None
    ) -> WebhookEndpointPageOutput:
        """List the webhook endpoints, newest first."""
        answer: WebhookEndpointPageOutput = self._call(
            Call("GET", "/webhook-endpoints", query={"cursor": cursor, "limit": limit})
        )
        return answer

    def iterate_webhook_endpoints(
        self, *, limit: int | None = None
    ) -> Iterator[WebhookEndpointOutput]:
        """List the webhook endpoints, newest first: all pages, one item after another."""
        cursor: str | None = None
        while True:
            page = self.list_webhook_endpoints(limit=limit, cursor=cursor)
            yield from page["webhookEndpoints"]
            cursor = page["nextCursor"]
            if cursor is None:
                return

    def record_consent(self, body: ConsentBody) -> ConsentAnswer:
        """Record what one person decided, or up to 500 decisions."""
        answer: ConsentAnswer = self._call(Call("POST", "/consent", body=body))
        return answer

    def register_devices(self, body: DeviceBody) -> DeviceOutput | DeviceRegisteredOutput:
        """Register a device, or up to 500."""
        answer: DeviceOutput | DeviceRegisteredOutput = self._call(
            Call("POST", "/devices", body=body)
        )
        return answer

    def remove_device(self, device_id: str) -> None:
        """Forget a device."""
        answer: None = self._call(Call("DELETE", f"/devices/{quoted(device_id)}"))
        return answer

    def render_template(self, name: str, body: RenderInput | None = None) -> RenderOutput:
        """Preview a template."""
        answer: RenderOutput = self._call(
            Call("POST", f"/templates/{quoted(name)}/render", body=body or {})
        )
        return answer

    def replace_device_token(self, device_id: str, body: ReplaceInput) -> DeviceOutput:
        """Replace the token of a device."""
        answer: DeviceOutput = self._call(
            Call("POST", f"/devices/{quoted(device_id)}/replace", body=body)
        )
        return answer

    def replay_webhooks(
        self, endpoint_id: str, body: ReplayInput | None = None
    ) -> WebhookReplayOutput:
        """Send events to a webhook endpoint again."""
        answer: WebhookReplayOutput = self._call(
            Call("POST", f"/webhook-endpoints/{quoted(endpoint_id)}/replay", body=body or {})
        )
        return answer

    def rotate_webhook_secret(self, endpoint_id: str) -> WebhookEndpointSecretOutput:
        """Replace the signing secret of a webhook endpoint."""
        answer: WebhookEndpointSecretOutput = self._call(
            Call("POST", f"/webhook-endpoints/{quoted(endpoint_id)}/rotate-secret")
        )
        return answer

    def send_message(
        self,
        body: MessageInput,
        *,
        dry_run: bool | None = None,
        idempotency_key: str | None = None,
        prefer: str | None = None,
    ) -> SentOrDryRun | SendOutput:
        """Send a message."""
        answer: SentOrDryRun | SendOutput = self._call(
            Call(
                "POST",
                "/messages",
                query={"dryRun": dry_run},
                headers={"Idempotency-Key": idempotency_key, "Prefer": prefer},
                body=body,
                keyed=True,
            )
        )
        return answer

    def send_messages(self, body: BulkInput, *, idempotency_key: str | None = None) -> BulkOutput:
        """Send up to 500 messages."""
        answer: BulkOutput = self._call(
            Call(
                "POST",
                "/messages/bulk",
                headers={"Idempotency-Key": idempotency_key},
                body=body,
                keyed=True,
            )
        )
        return answer

    def show_vapid_key(self) -> VapidKeyOutput:
        """Get the key that browsers subscribe with."""
        answer: VapidKeyOutput = self._call(Call("GET", "/devices/vapid-key"))
        return answer

    def test_webhook_endpoint(self, endpoint_id: str) -> WebhookTestOutput:
        """Send a test event to a webhook endpoint."""
        answer: WebhookTestOutput = self._call(
            Call("POST", f"/webhook-endpoints/{quoted(endpoint_id)}/test")
        )
        return answer

    def update_webhook_endpoint(
        self, endpoint_id: str, body: PatchedEndpointUpdateInput | None = None
    ) -> WebhookEndpointOutput:
        """Change, enable or disable a webhook endpoint."""
        answer: WebhookEndpointOutput = self._call(
            Call("PATCH", f"/webhook-endpoints/{quoted(endpoint_id)}", body=body or {})
        )
        return answer
