"""Checks of provider accounts, by a log-in or a test message; what they found is stored."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from messaging import providers
from messaging.models import ProviderAccount
from messaging.policy import organization_policy
from rme.core import addresses, ids
from rme.core.db import clock
from rme.core.outbound import outbound_transport
from rme.core.outcomes import Accepted, Misconfigured, Outcome, Retryable
from rme.core.provider import Content, Dispatch, Email, Push, Sms
from rme.tenants import audit
from rme.tenants.audit import Action, Actor

BROKEN = Misconfigured("The account's settings are broken.")
"""The outcome of an account whose stored settings its provider refuses."""


def check(organization_id: str, account_id: int, actor: Actor) -> Mapping[str, Any]:
    """Log in to an account's provider without sending, and store and audit what came of it.

    Returns nothing where only a message can show whether it works. It waits for the provider's
    host: no web thread may call it (`rme.core.http.checks`).
    """
    row = _account(organization_id, account_id)
    provider = organization_policy.account_of(row).provider
    outcome = provider.check(outbound_transport()) if provider else BROKEN
    if outcome is None:
        return {"problem": _("The connection can't be checked without sending. Send a test.")}
    store(row, outcome)
    entry = audit.about(row, Action.TESTED, organization_id, text=f"connection: {in_words(row)}")
    audit.record(actor, [entry])
    return {}


def send_test(organization_id: str, account_id: int, actor: Actor, to: str) -> Mapping[str, Any]:
    """Send a test message through one account, and store, audit and return what came of it.

    It waits for the provider's host, as `check` does.
    """
    row = _account(organization_id, account_id)
    provider = organization_policy.account_of(row).provider
    outcome: Outcome = BROKEN
    if provider:
        test = Dispatch(ids.new_text_id(), _test_content(row, to))
        (outcome,) = provider.send([test], outbound_transport())
    store(row, outcome)
    result = {"outcome": type(outcome).__name__, "reason": getattr(outcome, "reason", "")}
    text = ": ".join(filter(None, ["send", *result.values()]))
    entry = audit.about(row, Action.TESTED, organization_id, text=text)
    audit.record(actor, [entry])
    return {"to": to, "accepted": isinstance(outcome, Accepted), **result}


def _account(organization_id: str, account_id: int) -> ProviderAccount:
    rows = ProviderAccount.objects.select_related("organization")
    return rows.get(pk=account_id, organization_id=organization_id)


def store(row: ProviderAccount, outcome: Outcome) -> None:
    """Store what a check or a test says of the account; a refused recipient says nothing of it."""
    if not isinstance(outcome, Accepted | Retryable | Misconfigured):
        return
    # A provider's reason holds no secret (docs/adding-a-provider.md), and no address.
    row.check_problem = addresses.redacted(getattr(outcome, "reason", ""))[:200]
    row.checked_at = clock.now()
    values = {"checked_at": row.checked_at, "check_problem": row.check_problem}
    rows = ProviderAccount.objects.filter(pk=row.pk, organization_id=row.organization_id)
    with transaction.atomic():
        locked = rows.select_for_update().only("credentials").first()
        if locked and locked.credentials == row.credentials:  # else others were stored meanwhile
            rows.update(**values)


def has_other_settings(row: ProviderAccount) -> bool:
    """Return whether an account is about to be stored with other settings than it has."""
    stored_row = ProviderAccount.objects.get(pk=row.pk, organization_id=row.organization_id)
    old_provider, new_provider = (
        organization_policy.account_of(each).provider for each in (stored_row, row)
    )
    return not (old_provider and new_provider and old_provider.settings == new_provider.settings)


def _test_content(account: ProviderAccount, to: str) -> Content:
    text = f"This is a test of the account {account.name}."
    match account.channel:
        case "SMS":
            return Sms(to=to, text=text)
        case "PUSH":
            kind = providers.REGISTRY[account.kind]
            platform = next(iter(kind.platforms), "ANDROID")
            return Push(token=to, platform=platform, title="Test", body=text)
    verified = organization_policy.of(account.organization_id).default_domain
    domain = verified.domain if verified else "localhost.localdomain"
    return Email(
        to=to,
        from_address=f"{verified.local_part if verified else 'no-reply'}@{domain}",
        from_name=account.organization.name,
        subject="Test",
        text=text,
        message_id=f"{ids.new_text_id()}@{domain}",
    )


def in_words(row: ProviderAccount) -> str:
    """Return what the last check found, and when."""
    if row.checked_at is None:
        return _("Not checked since the settings were stored.")
    at = date_format(timezone.localtime(row.checked_at), "DATETIME_FORMAT")
    if not row.check_problem:
        return _("Checked on %(at)s: works.") % {"at": at}
    values = {"at": at, "problem": row.check_problem}
    return _("Checked on %(at)s: failed. %(problem)s") % values
