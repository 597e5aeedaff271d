"""The providers that people choose from, and the names that their fields have in their consoles.

The email services of django-anymail are one kind of account. People choose each by its own name,
and its form has only the fields of that service.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from messaging import providers
from messaging.console import wording
from messaging.domain.channels import Channel
from messaging.models import ProviderAccount
from messaging.policy import organization_policy

ANYMAIL = "anymail"
"""The kind of account that has a service."""
SERVICES = {
    "postmark": "Postmark",
    "resend": "Resend",
    "sendgrid": "SendGrid",
    "mailgun": "Mailgun",
    "mailjet": "Mailjet",
    "brevo": "Brevo",
    "mailersend": "MailerSend",
    "mailtrap": "Mailtrap",
    "mandrill": "Mailchimp Transactional",
    "postal": "Postal",
    "scaleway": "Scaleway",
    "sparkpost": "SparkPost",
    "unisender_go": "Unisender Go",
}
"""Email services, by their names in settings."""
SERVICE_NOTES = {
    "scaleway": _("Scaleway sends no delivery receipts, so messages stay in the status Sent."),
    "sendgrid": _("django-anymail has stopped supporting SendGrid. Send a test before you use it."),
}
_CREDENTIALS = _("Webhook credentials (user:password)")
_COMMON = {
    "sender": _("Sender"),
    "timeout": _("Timeout (seconds)"),
    "base_url": _("API URL"),
    "ca_pem": _("CA certificate (PEM)"),
    "callback_secret": _("Callback secret"),
    "api_key": _("API key"),
    "username": _("User name"),
}
_LABELS: dict[str, dict[str, Any]] = {
    "smtp": {"helo": _("EHLO name")},
    "ses": {
        "region": _("AWS region"),
        "access_key_id": _("Access key ID"),
        "topic_arn": _("SNS topic ARN"),
        "base_url": _("SES URL"),
        "sns_url": _("SNS URL"),
    },
    "twilio": {
        "account_sid": _("Account SID"),
        "auth_token": _("Auth token"),
        "api_key_sid": _("API key SID"),
        "api_key_secret": _("API key secret"),
        "sender": _("From"),
        "status_by": _("Delivery receipts"),
    },
    "vonage": {"api_secret": _("API secret"), "signature_secret": _("Signature secret")},
    "kannel": {"smsc": _("SMSC"), "base_url": _("Gateway URL")},
    "smpp": {"system_id": _("System ID"), "tls": _("TLS"), "message_ids": _("Message IDs")},
    "http_sms": {"url": _("URL"), "parameters_json": _("Parameters (JSON)")},
    "apns": {
        "team_id": _("Team ID"),
        "key_id": _("Key ID"),
        "private_key": _("Authentication key (.p8)"),
        "topic": _("Bundle ID"),
        "production_url": _("Production URL"),
        "sandbox_url": _("Sandbox URL"),
    },
    "fcm": {"service_account_json": _("Service account key (JSON)")},
    "webpush": {"subject": _("Contact address")},
    "salesforce": {
        "login_url": _("My Domain URL"),
        "client_id": _("Consumer key"),
        "client_secret": _("Consumer secret"),
        "notification_type_id": _("Notification type ID"),
        "api_version": _("API version"),
    },
    "postmark": {
        "api_key": _("Server API token"),
        "message_stream": _("Message stream"),
        "callback_secret": _CREDENTIALS,
    },
    "resend": {"callback_secret": _("Webhook signing secret")},
    "sendgrid": {"callback_secret": _("Event webhook verification key")},
    "mailgun": {
        "sender_domain": _("Sending domain"),
        "callback_secret": _("HTTP webhook signing key"),
    },
    "mailjet": {"secret_key": _("Secret key"), "callback_secret": _CREDENTIALS},
    "brevo": {"callback_secret": _CREDENTIALS},
    "mailersend": {"api_key": _("API token"), "callback_secret": _("Webhook signing secret")},
    "mailtrap": {"api_key": _("API token"), "callback_secret": _("Webhook signature key")},
    "mandrill": {"callback_secret": _("Webhook key")},
    "postal": {"callback_secret": _("Webhook public key")},
    "scaleway": {"api_key": _("Secret key"), "project_id": _("Project ID"), "region": _("Region")},
    "sparkpost": {"subaccount": _("Subaccount ID"), "callback_secret": _CREDENTIALS},
}
"""The labels of settings by kind or service. Others are made from the setting's name."""
CHOICES: dict[str, Any] = {
    "NONE": _("None (not encrypted)"),
    "CALLBACK": _("By callback"),
    "POLL": _("By polling"),
    "FORM": _("Form"),
    "QUERY": _("Query"),
    "SAME": _("The same everywhere"),
    "HEX_IN_RESPONSES": _("Hexadecimal in responses"),
    "HEX_IN_RECEIPTS": _("Hexadecimal in receipts"),
}
"""Choices of settings in words. Others are names of their own, such as TLS."""


@dataclass(frozen=True, slots=True)
class ProviderCard:
    """A provider to choose: `name` is its kind, or its service."""

    name: str
    label: str
    channels: frozenset[str]


def cards() -> Iterator[ProviderCard]:
    """Yield the providers to choose from, in the order of the registry."""
    for kind, provider in providers.REGISTRY.items():
        if kind == ANYMAIL:
            for name, label in SERVICES.items():
                yield ProviderCard(name, label, provider.channels)
        else:
            yield ProviderCard(kind, gettext(provider.label), provider.channels)


def by_channel() -> list[tuple[str, list[ProviderCard]]]:
    """Return the providers to choose from under the label of their channel, or of several."""
    every_card = list(cards())
    groups = [
        (wording.channel(channel), [each for each in every_card if each.channels == {channel}])
        for channel in Channel
    ]
    several = [each for each in every_card if len(each.channels) > 1]
    return [*groups, (gettext("For testing"), several)]


def split(name: str) -> tuple[str, str]:
    """Return the kind and the service that a name means; the service may be empty."""
    return (ANYMAIL, name) if name in SERVICES else (name, "")


def label(kind: str, service: str = "") -> str:
    """Return the name of a kind of account, or of its service."""
    if service in SERVICES:
        return SERVICES[service]
    return gettext(providers.REGISTRY[kind].label) if kind in providers.REGISTRY else kind


def label_of(row: ProviderAccount) -> str:
    """Return the name of an account's provider."""
    provider = organization_policy.account_of(row).provider if row.kind == ANYMAIL else None
    return label(row.kind, getattr(provider.settings, "service", "") if provider else "")


def setting_label(kind: str, setting: str, service: str = "") -> Any:
    """Return the label of a setting, as the provider's own console calls it; translated lazily."""
    tables = (_LABELS.get(service, {}), _LABELS.get(kind, {}), _COMMON)
    for table in tables:
        if setting in table:
            return table[setting]
    return capfirst(_(setting.replace("_", " ")))
