"""Models of the messaging service, by noun.

Other packages import the models from here, and use `statuses`, `transitions`, `derived_events`,
`delivery_lookup`, `decisions` (the reasons in a plan) and `endpoints`.
"""

from messaging.models.archive import ArchiveErasure, ArchiveFile, ArchiveProgress
from messaging.models.console import BulkAction, SavedFilter
from messaging.models.endpoints import WebhookDelivery, WebhookEndpoint
from messaging.models.messages import (
    PARTITIONED,
    TRACEPARENT,
    Attempt,
    ContentBody,
    Delivery,
    Event,
    IdempotencyKey,
    LiteralContent,
    Message,
    MessageContent,
    PushOverrides,
    Sender,
    partition_periods,
    sender_of,
    short_provider_id,
    stored_sender,
)
from messaging.models.people import (
    ConsentEntry,
    LedgerCheck,
    PrivacyFile,
    PrivacyRequest,
    Suppression,
    SuppressionImport,
    SuppressionImportPart,
)
from messaging.models.policy import Category, Pause, ProviderAccount, SenderDomain, SendingRules
from messaging.models.provider_history import CallbackLogEntry, CircuitChange
from messaging.models.receipts import Callback, Hit, InboundSmsParts, ProviderReference
from messaging.models.statistics import CountedOutcome, CountedUntil, HourCount, MinuteCount
from messaging.models.templates import Partial, Template, TemplateVersion

__all__ = [
    "PARTITIONED",
    "TRACEPARENT",
    "ArchiveErasure",
    "ArchiveFile",
    "ArchiveProgress",
    "Attempt",
    "BulkAction",
    "Callback",
    "CallbackLogEntry",
    "Category",
    "CircuitChange",
    "ConsentEntry",
    "ContentBody",
    "CountedOutcome",
    "CountedUntil",
    "Delivery",
    "Event",
    "Hit",
    "HourCount",
    "IdempotencyKey",
    "InboundSmsParts",
    "LedgerCheck",
    "LiteralContent",
    "Message",
    "MessageContent",
    "MinuteCount",
    "Partial",
    "Pause",
    "PrivacyFile",
    "PrivacyRequest",
    "ProviderAccount",
    "ProviderReference",
    "PushOverrides",
    "SavedFilter",
    "Sender",
    "SenderDomain",
    "SendingRules",
    "Suppression",
    "SuppressionImport",
    "SuppressionImportPart",
    "Template",
    "TemplateVersion",
    "WebhookDelivery",
    "WebhookEndpoint",
    "partition_periods",
    "sender_of",
    "short_provider_id",
    "stored_sender",
]
