"""Checks of provider accounts, by a log-in or a test message; what they found is stored."""

from django.db import transaction
from django.utils.formats import date_format

from messaging import providers
from messaging.models import ProviderAccount
from messaging.policy import organization_policy
from rme.core import addresses, ids
from rme.core.db import clock
from rme.core.outbound import outbound_transport
from rme.core.outcomes import Accepted, Misconfigured, Outcome, Retryable
from rme.core.provider import Content, Dispatch, Email, Push, Sms

BROKEN = Misconfigured("The account's settings are broken.")
"""The outcome of an account whose stored settings its provider refuses."""


def check(row: ProviderAccount) -> Outcome | None:
    """Log in without sending and store the outcome; None if only a message can show it."""
    ready = organization_policy.account_of(row)
    outcome = ready.provider.check(outbound_transport()) if ready.provider else BROKEN
    if outcome is not None:
        store(row, outcome)
    return outcome


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
        stored = rows.select_for_update().values_list("credentials", flat=True).first()
        if stored == row.credentials:  # else others were stored meanwhile
            rows.update(**values)


def has_other_settings(row: ProviderAccount) -> bool:
    """Return whether an account is about to be stored with other settings than it has."""
    stored = ProviderAccount.objects.get(pk=row.pk, organization_id=row.organization_id)
    before, after = (organization_policy.account_of(each).provider for each in (stored, row))
    return not (before and after and before.settings == after.settings)


def send_test(account: ProviderAccount, to: str) -> Outcome:
    """Send a test message through one account; return the outcome."""
    ready = organization_policy.account_of(account)
    if ready.provider is None:
        return BROKEN
    content = _test_content(account, to)
    (outcome,) = ready.provider.send([Dispatch(ids.new_text_id(), content)], outbound_transport())
    return outcome


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
        return "Not checked since the settings were stored."
    result = f"does not work: {row.check_problem}" if row.check_problem else "works"
    return f"Checked on {date_format(row.checked_at, 'DATETIME_FORMAT')}: {result}."


def outcome_text(outcome: Outcome) -> str:
    """Return an outcome of a test as text."""
    if outcome is BROKEN:
        return BROKEN.reason
    reason = getattr(outcome, "reason", "")
    return f"{type(outcome).__name__}{': ' if reason else ''}{reason}"
