"""The key of an account's health."""

from messaging.policy.organization_policy import Account

Key = int | str
"""An account's id; for the simulator of organizations without a provider, its channel."""


def key_of(account: Account) -> Key:
    """Return the key of an account's health."""
    return account.channel if account.id is None else account.id
