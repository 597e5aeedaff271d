"""Models of the messaging service, by noun.

Other packages import the models from here, and use `endpoints` and `delivery_indexes`.
"""

from messaging.models.archive import ArchiveErasure, ArchiveFile, ArchiveProgress
from messaging.models.console import BulkAction, ListColumns, SavedFilter
from messaging.models.endpoints import WebhookDelivery, WebhookEndpoint
from messaging.models.messages import (
    PARTITIONED,
    Attempt,
    Delivery,
    Event,
    IdempotencyKey,
    Message,
    MessageContent,
    partition_periods,
)
from messaging.models.people import (
    AddressOptOut,
    ConsentEntry,
    ConsentEntryInTest,
    LedgerCheck,
    Suppression,
    SuppressionImport,
    SuppressionImportPart,
    SuppressionInTest,
)
from messaging.models.policy import Category, Pause, ProviderAccount, SenderDomain, SendingRules
from messaging.models.privacy import PrivacyFile, PrivacyRequest
from messaging.models.provider_history import CallbackLogEntry, CircuitChange
from messaging.models.receipts import Callback, Hit, InboundSmsParts, ProviderReference
from messaging.models.statistics import CountedOutcome, CountedUntil, HourCount, MinuteCount
from messaging.models.templates import Partial, PartialVersion, Template, TemplateVersion, Version

__all__ = [
    "PARTITIONED",
    "AddressOptOut",
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
    "ConsentEntryInTest",
    "CountedOutcome",
    "CountedUntil",
    "Delivery",
    "Event",
    "Hit",
    "HourCount",
    "IdempotencyKey",
    "InboundSmsParts",
    "LedgerCheck",
    "ListColumns",
    "Message",
    "MessageContent",
    "MinuteCount",
    "Partial",
    "PartialVersion",
    "Pause",
    "PrivacyFile",
    "PrivacyRequest",
    "ProviderAccount",
    "ProviderReference",
    "SavedFilter",
    "SenderDomain",
    "SendingRules",
    "Suppression",
    "SuppressionImport",
    "SuppressionImportPart",
    "SuppressionInTest",
    "Template",
    "TemplateVersion",
    "Version",
    "WebhookDelivery",
    "WebhookEndpoint",
    "partition_periods",
]
