"""Reads what organizations have decided about sending, for many of them by one statement.

The ORM takes longer to build these queries than all else costs of an organization that has only a
few deliveries in a claim.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any

from messaging.domain.channels import Channel
from messaging.domain.policy import (
    DEFAULT_CHANNEL_ORDER,
    CategoryRules,
    Domain,
    FrequencyCap,
    SendingRulesRecord,
)
from messaging.models import Category, ProviderAccount, SenderDomain, SendingRules
from rme.core.db import sql
from rme.core.db.encrypted_fields import Ciphertext
from rme.tenants.models import Organization

_OWNED = "WHERE organization_id = ANY(%(organizations)s::text[])"

# Plan: an index that begins with the organization.
# Run by: read, for policy.organization_policy
CATEGORIES = f"""
SELECT organization_id, name, regime, on_unknown, expires_after, cap_count, cap_window,
  channel_order
FROM {Category._meta.db_table} {_OWNED}
"""
# Plan: that of CATEGORIES.
# Run by: read, for policy.organization_policy
DOMAINS = f"""
SELECT organization_id, domain, local_part, name FROM {SenderDomain._meta.db_table} {_OWNED}
  AND verified_at IS NOT NULL
ORDER BY is_default DESC, id
"""
_ACCOUNT_COLUMNS = (
    *("id", "public_id", "name", "kind", "channel", "priority", "weight", "match", "rate"),
    *("state", "credentials"),
)
# A draft takes no part: no message waits for it.
# Plan: that of CATEGORIES.
# Run by: read, for policy.organization_policy
ACCOUNTS = f"""
SELECT organization_id, {", ".join(_ACCOUNT_COLUMNS)}
FROM {ProviderAccount._meta.db_table} {_OWNED} AND state <> '{ProviderAccount.State.DRAFT}'
ORDER BY priority, id
"""
_RULES_COLUMNS = tuple(column.name for column in fields(SendingRulesRecord))
_DEFAULTS = SendingRules()
_DEFAULT_RULES = tuple(getattr(_DEFAULTS, name) for name in _RULES_COLUMNS)
# Plan: that of CATEGORIES.
# Run by: read, for policy.organization_policy
SENDING_RULES = f"""
SELECT organization_id, {", ".join(_RULES_COLUMNS)} FROM {SendingRules._meta.db_table} {_OWNED}
"""
# Plan: the primary key.
# Run by: read, for policy.organization_policy
SIMULATED = f"""
SELECT id FROM {Organization._meta.db_table}
WHERE id = ANY(%(organizations)s::text[]) AND simulator
"""


@dataclass(frozen=True, slots=True)
class PolicyRows:
    """What one organization has decided, as it is stored."""

    categories: Sequence[CategoryRules]
    domains: Sequence[Domain]
    """The verified ones, the default first."""
    accounts: Sequence[ProviderAccount]
    """Ordered by priority, with encrypted credentials; without drafts."""
    sending: SendingRulesRecord
    simulated: bool


def read(organization_ids: Sequence[str]) -> dict[str, PolicyRows]:
    """Read the policies of organizations, by one statement however many there are."""
    values = {"organizations": sql.array(organization_ids)}
    statements = (CATEGORIES, DOMAINS, ACCOUNTS, SENDING_RULES, SIMULATED)
    categories, domains, accounts, rules, simulated = map(
        _by_organization, sql.read([sql.bind(each, values) for each in statements])
    )
    return {
        organization_id: PolicyRows(
            categories=[_category(row) for row in categories[organization_id]],
            domains=[Domain(*row) for row in domains[organization_id]],
            accounts=[_account(row) for row in accounts[organization_id]],
            sending=_sending(next(iter(rules[organization_id]), _DEFAULT_RULES)),
            simulated=organization_id in simulated,
        )
        for organization_id in organization_ids
    }


def _by_organization(rows: sql.Rows) -> defaultdict[str, list[list[Any]]]:
    rows_by_organization: defaultdict[str, list[list[Any]]] = defaultdict(list)
    for organization_id, *values in rows:
        rows_by_organization[organization_id].append(values)
    return rows_by_organization


def _category(row: Sequence[Any]) -> CategoryRules:
    name, regime, on_unknown, expires_after, cap_count, cap_window, channel_order = row
    return CategoryRules(
        name=name,
        opt_in=regime == Category.Regime.OPT_IN,
        resend_unknown=on_unknown == Category.OnUnknown.RESEND,
        expires_after=timedelta(seconds=expires_after),
        cap=FrequencyCap(cap_count, timedelta(seconds=cap_window)) if cap_count else None,
        channel_order=tuple(map(Channel, channel_order)) or DEFAULT_CHANNEL_ORDER,
    )


def _account(row: Sequence[Any]) -> ProviderAccount:
    *columns, credentials = row
    names = _ACCOUNT_COLUMNS[:-1]
    return ProviderAccount(
        **dict(zip(names, columns, strict=True)), credentials=Ciphertext(credentials)
    )


def _sending(row: Sequence[Any]) -> SendingRulesRecord:
    columns = dict(zip(_RULES_COLUMNS, row, strict=True))
    grace = timedelta(seconds=columns.pop("schedule_grace"))
    return SendingRulesRecord(schedule_grace=grace, **columns)
