"""The bodies and answers of the API.

Generated from the OpenAPI description by `make clients`; not to be edited.
"""

from typing import Any, Literal, NotRequired, TypedDict


class AtSchedule(TypedDict):
    """That instant."""

    mode: Literal["AT"]
    at: str


class BulkInput(TypedDict):
    """The envelope of a bulk. The items are checked one by one: a bad one fails no other."""

    messages: "list[BulkItem]"


BulkItem = TypedDict(
    "BulkItem",
    {
        "channel": NotRequired[Literal["EMAIL", "SMS", "PUSH", "AUTO"] | None],
        "channels": NotRequired[list[Literal["EMAIL", "SMS", "PUSH"]] | None],
        "strategy": NotRequired[Literal["FIRST_REACHABLE", "FIRST_DELIVERED"]],
        "fallbackAfter": NotRequired[int | None],
        "category": str,
        "to": "list[RecipientInput]",
        "template": NotRequired["TemplateInput | None"],
        "content": NotRequired["ContentInput | None"],
        "push": NotRequired["PushInput | None"],
        "context": NotRequired["ContextInput | None"],
        "from": NotRequired["FromInput | None"],
        "schedule": NotRequired["LocalSchedule | OrgSchedule | AtSchedule | None"],
        "metadata": NotRequired[dict[str, str] | None],
        "idempotencyKey": NotRequired[str | None],
    },
)


class BulkItemOutput(TypedDict):
    """The send result of one item, or its error."""

    index: int
    messageId: NotRequired[str | None]
    status: NotRequired[
        Literal[
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
        | None
    ]
    resolvedChannel: NotRequired[str | None]
    provider: NotRequired[str | None]
    scheduledFor: NotRequired[str | None]
    recipients: NotRequired["list[RecipientOutput] | None"]
    warnings: NotRequired["list[WarningOutput] | None"]
    error: NotRequired["ErrorObject | None"]


class BulkOutput(TypedDict):
    accepted: int
    rejected: int
    results: "list[BulkItemOutput]"


class CheckOutput(TypedDict):
    status: Literal["ok", "degraded", "down"]
    latencyMs: float
    detail: str | None


class ChecksOutput(TypedDict):
    """What the service depends on, as the answering process sees it."""

    database: "CheckOutput"
    redis: "CheckOutput"
    broker: "CheckOutput"
    workers: "CheckOutput"
    scheduler: "CheckOutput"
    archive: NotRequired["CheckOutput | None"]


class ConsentEntries(TypedDict):
    """Many entries, for the OpenAPI description."""

    entries: "list[ConsentInput]"


class ConsentEntriesOutput(TypedDict):
    accepted: int
    rejected: int
    results: "list[ConsentItemOutput]"


class ConsentInput(TypedDict):
    """One person's decision. Without `occurredAt` it was made now."""

    contactId: str
    channel: Literal["EMAIL", "SMS", "PUSH", "ALL"]
    category: str
    status: Literal["OPTED_IN", "OPTED_OUT"]
    source: NotRequired[
        Literal[
            "API", "ADMIN", "PREFERENCE_PAGE", "ONE_CLICK", "SMS_KEYWORD", "IMPORT", "DOUBLE_OPT_IN"
        ]
    ]
    evidence: NotRequired[dict[str, str]]
    occurredAt: NotRequired[str | None]


class ConsentItemOutput(TypedDict):
    """The entry made of one item, or the item's error."""

    index: int
    entry: NotRequired["ConsentOutput | None"]
    error: NotRequired["ErrorObject | None"]


class ConsentOutput(TypedDict):
    """One entry of the ledger."""

    id: str
    contactId: str
    channel: Literal["EMAIL", "SMS", "PUSH", "ALL"]
    category: str
    status: Literal["OPTED_IN", "OPTED_OUT"]
    source: Literal[
        "API", "ADMIN", "PREFERENCE_PAGE", "ONE_CLICK", "SMS_KEYWORD", "IMPORT", "DOUBLE_OPT_IN"
    ]
    occurredAt: str
    recordedAt: str


class ConsentPageOutput(TypedDict):
    consent: "list[ConsentOutput]"
    nextCursor: str | None


class ContentInput(TypedDict):
    """Literal content: what stands here is sent as it is."""

    subject: NotRequired[str | None]
    text: NotRequired[str | None]
    html: NotRequired[str | None]
    title: NotRequired[str | None]
    body: NotRequired[str | None]
    data: NotRequired[dict[str, Any] | None]
    badge: NotRequired[int | None]


class ContextInput(TypedDict):
    recordId: NotRequired[str | None]
    variables: NotRequired[dict[str, Any]]


class DeliveryOutput(TypedDict):
    contactId: str
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
    resolvedChannel: str | None
    provider: str | None
    scheduledFor: str | None
    waiting: str | None
    error: "ReasonOutput | None"


class DetailOutput(TypedDict):
    field: str
    message: str


class DetailedOutput(TypedDict):
    """A message with its events, and with its trace where `include=trace` asks for it."""

    messageId: str
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
    channel: str | None
    category: str
    template: "TemplateOutput | None"
    provider: str | None
    scheduledFor: str | None
    createdAt: str
    error: "ReasonOutput | None"
    metadata: dict[str, str]
    test: bool
    recipients: "list[DeliveryOutput]"
    events: "list[EventOutput]"
    trace: NotRequired["list[TraceOutput] | None"]


class DeviceBulkOutput(TypedDict):
    accepted: int
    rejected: int
    results: "list[DeviceResultOutput]"


class DeviceEntries(TypedDict):
    """Many devices, each as one alone is given. A bad one fails no other."""

    entries: "list[DeviceInput]"


class DeviceInputTokenKeys(TypedDict):
    p256dh: str
    auth: str


class DeviceInputToken(TypedDict):
    """A PushSubscription, as `toJSON()` gives it."""

    endpoint: str
    expirationTime: NotRequired[Any]
    keys: "DeviceInputTokenKeys"


class DeviceInput(TypedDict):
    """A device. At least one of `contactId` and `userId` is given."""

    contactId: NotRequired[str | None]
    userId: NotRequired[str | None]
    platform: Literal["IOS", "ANDROID", "WEB", "PLATFORM"]
    token: "str | DeviceInputToken"
    app: NotRequired[str | None]
    environment: NotRequired[Literal["PRODUCTION", "SANDBOX"]]
    locale: NotRequired[str | None]
    timeZone: NotRequired[str | None]
    name: NotRequired[str | None]


class DeviceListedOutput(TypedDict):
    """A device, without its token."""

    deviceId: str
    contactId: str | None
    platform: Literal["IOS", "ANDROID", "WEB", "PLATFORM"]
    active: bool
    registeredAt: str
    userId: str | None
    app: str | None
    environment: Literal["PRODUCTION", "SANDBOX"]
    locale: str | None
    timeZone: str | None
    name: str | None
    lastSeenAt: str
    inactiveReason: str | None
    inactiveSince: str | None


class DeviceOutput(TypedDict):
    """A device as registering answers with it."""

    deviceId: str
    contactId: str | None
    platform: Literal["IOS", "ANDROID", "WEB", "PLATFORM"]
    active: bool
    registeredAt: str


class DevicePageOutput(TypedDict):
    devices: "list[DeviceListedOutput]"
    nextCursor: str | None


class DeviceResultOutput(TypedDict):
    """One device of many as it is now, or what is wrong with it."""

    index: int
    entry: NotRequired["DeviceOutput | None"]
    error: NotRequired["ErrorObject | None"]


class DryRunOutput(TypedDict):
    """The result of a dry run. Nothing was stored, so nothing has a `messageId`. The fields of"""

    messageId: None
    status: (
        Literal[
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
        | None
    )
    resolvedChannel: str | None
    provider: str | None
    scheduledFor: str | None
    wouldSend: bool
    result: dict[str, Any] | None
    error: "ErrorObject | None"
    recipients: "list[DryRunRecipientOutput]"


class DryRunRecipientOutput(TypedDict):
    """What a recipient would get."""

    contactId: str
    status: (
        Literal[
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
        | None
    )
    resolvedChannel: str | None
    provider: str | None
    scheduledFor: str | None
    error: "ErrorObject | None"
    trace: "list[StepOutput]"
    content: dict[str, Any] | None
    renderError: str | None


class EndpointInput(TypedDict):
    """A new endpoint."""

    url: str
    description: NotRequired[str]
    types: list[
        Literal[
            "message.*",
            "message.accepted",
            "message.scheduled",
            "message.sent",
            "message.delivered",
            "message.open",
            "message.click",
            "message.deferred",
            "message.failover",
            "message.fallback",
            "message.bounced",
            "message.complained",
            "message.unsubscribed",
            "message.failed",
            "message.blocked",
            "message.cancelled",
            "message.expired",
            "consent.changed",
            "suppression.created",
            "suppression.changed",
            "suppression.lifted",
            "device.registered",
            "device.deactivated",
        ]
    ]


class ErrorObject(TypedDict):
    code: str
    message: str
    messageId: str | None
    requestId: str
    details: "list[DetailOutput]"


class ErrorOutput(TypedDict):
    """Every error has this shape."""

    error: "ErrorObject"


class EventOutput(TypedDict):
    type: str
    at: str
    contactId: str
    channel: NotRequired[str | None]
    provider: NotRequired[str | None]
    detail: NotRequired[dict[str, Any] | None]


class FindingOutput(TypedDict):
    """What a person must set right. `error`: sends fail or wait because of it."""

    severity: Literal["error", "warning"]
    code: str
    message: str


class FromInput(TypedDict):
    domain: NotRequired[str | None]
    name: NotRequired[str | None]
    localPart: NotRequired[str | None]


class HealthOutput(TypedDict):
    """`down`: nothing can be accepted; `degraded`: a part of the service does not answer."""

    status: Literal["ok", "degraded", "down"]
    version: str
    time: str
    checks: "ChecksOutput"
    queues: "list[QueueOutput]"
    providers: "list[ProviderOutput]"
    configuration: "list[FindingOutput]"


class HistoryOutput(TypedDict):
    messages: "list[SummaryOutput]"
    nextCursor: str | None


class LocalSchedule(TypedDict):
    """That wall-clock time where each recipient is."""

    mode: Literal["LOCAL"]
    time: str
    date: NotRequired[str | None]


MessageInput = TypedDict(
    "MessageInput",
    {
        "channel": NotRequired[Literal["EMAIL", "SMS", "PUSH", "AUTO"] | None],
        "channels": NotRequired[list[Literal["EMAIL", "SMS", "PUSH"]] | None],
        "strategy": NotRequired[Literal["FIRST_REACHABLE", "FIRST_DELIVERED"]],
        "fallbackAfter": NotRequired[int | None],
        "category": str,
        "to": "list[RecipientInput]",
        "template": NotRequired["TemplateInput | None"],
        "content": NotRequired["ContentInput | None"],
        "push": NotRequired["PushInput | None"],
        "context": NotRequired["ContextInput | None"],
        "from": NotRequired["FromInput | None"],
        "schedule": NotRequired["LocalSchedule | OrgSchedule | AtSchedule | None"],
        "metadata": NotRequired[dict[str, str] | None],
    },
)


class OrgSchedule(TypedDict):
    """That wall-clock time in the organization's zone."""

    mode: Literal["ORG"]
    time: str
    date: NotRequired[str | None]


class PatchedEndpointUpdateInput(TypedDict):
    """What changes about an endpoint. A field that is left out stays as it is."""

    url: NotRequired[str]
    description: NotRequired[str]
    types: NotRequired[
        list[
            Literal[
                "message.*",
                "message.accepted",
                "message.scheduled",
                "message.sent",
                "message.delivered",
                "message.open",
                "message.click",
                "message.deferred",
                "message.failover",
                "message.fallback",
                "message.bounced",
                "message.complained",
                "message.unsubscribed",
                "message.failed",
                "message.blocked",
                "message.cancelled",
                "message.expired",
                "consent.changed",
                "suppression.created",
                "suppression.changed",
                "suppression.lifted",
                "device.registered",
                "device.deactivated",
            ]
        ]
    ]
    enabled: NotRequired[bool]


class ProviderOutput(TypedDict):
    """A provider account; its numbers are of the last hour."""

    name: str
    channel: Literal["EMAIL", "SMS", "PUSH"]
    status: Literal["ok", "degraded", "down", "paused", "draining"]
    circuit: Literal["CLOSED", "OPEN", "HALF_OPEN"]
    successRate: float | None
    p95LatencyMs: int | None
    lastSuccessAt: str | None
    lastError: str | None


class PushInput(TypedDict):
    """What a push says beyond its template."""

    data: NotRequired[dict[str, Any] | None]
    badge: NotRequired[int | None]
    image: NotRequired[str | None]
    link: NotRequired[str | None]
    ttl: NotRequired[int | None]
    collapseKey: NotRequired[str | None]
    priority: NotRequired[Literal["HIGH", "NORMAL"] | None]


class QueueOutput(TypedDict):
    """What is ready to be sent on a channel and has not gone."""

    channel: Literal["EMAIL", "SMS", "PUSH"]
    ready: int
    oldestSeconds: float


class ReasonOutput(TypedDict):
    code: str
    message: str


class RecipientInput(TypedDict):
    contactId: str
    variables: NotRequired[dict[str, Any]]


class RecipientOutput(TypedDict):
    contactId: str
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
    resolvedChannel: str | None
    provider: str | None
    scheduledFor: str | None
    error: "ErrorObject | None"


class RenderInput(TypedDict):
    """Which version of a template to render, for whom and with what."""

    language: NotRequired[str | None]
    channel: NotRequired[Literal["EMAIL", "SMS", "PUSH"] | None]
    version: NotRequired[int | None]
    contactId: NotRequired[str | None]
    context: NotRequired["ContextInput | None"]
    variables: NotRequired[dict[str, Any]]


class RenderOutput(TypedDict):
    """A version as it would be sent; what its channel does not have is null."""

    name: str
    language: str
    channel: Literal["EMAIL", "SMS", "PUSH"]
    version: int
    subject: str | None
    text: str | None
    html: str | None
    title: str | None
    body: str | None
    data: dict[str, str] | None
    sms: "SmsOutput | None"
    missing: list[str]
    warnings: "list[DetailOutput]"


class ReplaceInputTokenKeys(TypedDict):
    p256dh: str
    auth: str


class ReplaceInputToken(TypedDict):
    """A PushSubscription, as `toJSON()` gives it."""

    endpoint: str
    expirationTime: NotRequired[Any]
    keys: "ReplaceInputTokenKeys"


class ReplaceInput(TypedDict):
    """The token that takes the place of the device's."""

    token: "str | ReplaceInputToken"


class ReplayInput(TypedDict):
    """A replay: without a period, of the deliveries that were given up in 30 days."""

    since: NotRequired[str | None]
    until: NotRequired[str | None]


class SendOutput(TypedDict):
    """The send result. `recipients` is there where there is more than one."""

    messageId: str
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
    resolvedChannel: str | None
    provider: str | None
    scheduledFor: str | None
    recipients: NotRequired["list[RecipientOutput] | None"]
    warnings: NotRequired["list[WarningOutput] | None"]


class SmsOutput(TypedDict):
    """What an SMS takes; `units` are septets (GSM-7) or UTF-16 units (UCS-2)."""

    encoding: Literal["GSM-7", "UCS-2"]
    characters: int
    units: int
    segments: int


class StepOutput(TypedDict):
    """One step of the trace; docs/messages.md says what each may hold."""

    at: str
    step: Literal["DECISION", "ATTEMPT", "GATE", "WAIT", "FAILOVER", "FALLBACK"]
    result: str | None
    channel: NotRequired[str | None]
    entry: NotRequired[str | None]
    until: NotRequired[str | None]
    provider: NotRequired[str | None]
    providerId: NotRequired[str | None]
    deviceId: NotRequired[str | None]
    detail: NotRequired[str | None]
    latencyMs: NotRequired[int | None]


class SummaryOutput(TypedDict):
    """A message without its events."""

    messageId: str
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
    channel: str | None
    category: str
    template: "TemplateOutput | None"
    provider: str | None
    scheduledFor: str | None
    createdAt: str
    error: "ReasonOutput | None"
    metadata: dict[str, str]
    test: bool
    recipients: "list[DeliveryOutput]"


class SuppressionBulkOutput(TypedDict):
    accepted: int
    rejected: int
    results: "list[SuppressionResultOutput]"


class SuppressionEntries(TypedDict):
    """Many entries, for the OpenAPI description. A bad one fails no other."""

    entries: "list[SuppressionInput]"


class SuppressionInput(TypedDict):
    """An entry. Exactly one of `address` and `contactId` is given; PUSH needs a contact."""

    channel: Literal["EMAIL", "SMS", "PUSH", "ALL"]
    address: NotRequired[str | None]
    contactId: NotRequired[str | None]
    reason: NotRequired[
        Literal["HARD_BOUNCE", "COMPLAINT", "STOP", "UNSUBSCRIBE", "INVALID_ADDRESS", "MANUAL"]
    ]
    note: NotRequired[str | None]
    expiresAt: NotRequired[str | None]


class SuppressionListOutput(TypedDict):
    suppressions: "list[SuppressionOutput]"
    nextCursor: str | None


class SuppressionOutput(TypedDict):
    """An address, or a contact, that is not written to on a channel."""

    id: str
    channel: Literal["EMAIL", "SMS", "PUSH", "ALL"]
    address: str | None
    contactId: str | None
    reason: Literal["HARD_BOUNCE", "COMPLAINT", "STOP", "UNSUBSCRIBE", "INVALID_ADDRESS", "MANUAL"]
    note: str | None
    source: str
    createdAt: str
    expiresAt: str | None


class SuppressionResultOutput(TypedDict):
    """One entry of many as it is on the list now, or what is wrong with it."""

    index: int
    entry: NotRequired["SuppressionOutput | None"]
    error: NotRequired["ErrorObject | None"]


class TemplateInput(TypedDict):
    name: str
    language: NotRequired[str | None]


class TemplateOutput(TypedDict):
    name: str
    language: str | None


class TemplatesOutput(TypedDict):
    templates: "list[VersionOutput]"
    nextCursor: str | None


class TraceOutput(TypedDict):
    contactId: str
    steps: "list[StepOutput]"


class VapidKeyOutput(TypedDict):
    """What a browser needs to subscribe."""

    key: str


class VersionOutput(TypedDict):
    """One version of a template."""

    name: str
    language: str
    channel: Literal["EMAIL", "SMS", "PUSH"]
    category: str
    status: Literal["DRAFT", "ACTIVE", "ARCHIVED"]
    version: int
    variables: dict[str, Any]
    updatedAt: str


class WarningOutput(TypedDict):
    """An accepted field of the request that has no effect on some channel."""

    field: str
    message: str


class WebhookEndpointOutput(TypedDict):
    """A URL to which the organization's events are sent."""

    id: str
    url: str
    description: str
    types: list[str]
    enabled: bool
    disabledReason: str | None
    failingSince: str | None
    lastSuccessAt: str | None
    formerSecretUntil: str | None
    createdAt: str


class WebhookEndpointPageOutput(TypedDict):
    webhookEndpoints: "list[WebhookEndpointOutput]"
    nextCursor: str | None


class WebhookEndpointSecretOutput(TypedDict):
    """An endpoint with its secret, which is shown this once."""

    id: str
    url: str
    description: str
    types: list[str]
    enabled: bool
    disabledReason: str | None
    failingSince: str | None
    lastSuccessAt: str | None
    formerSecretUntil: str | None
    createdAt: str
    secret: str


class WebhookReplayOutput(TypedDict):
    queued: int
    complete: bool


class WebhookTestOutput(TypedDict):
    webhookId: str


ConsentAnswer = ConsentOutput | ConsentEntriesOutput
ConsentBody = ConsentInput | ConsentEntries
DeviceBody = DeviceInput | DeviceEntries
DeviceRegisteredOutput = DeviceOutput | DeviceBulkOutput
SentOrDryRun = SendOutput | DryRunOutput
SuppressionAddedOutput = SuppressionOutput | SuppressionBulkOutput
SuppressionBody = SuppressionInput | SuppressionEntries
