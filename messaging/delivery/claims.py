"""Claim what is ready to be sent: fair between organizations, TRANSACTIONAL first.

A claim is a compare-and-set from ACCEPTED to SENDING with a lease and a fencing token. Two workers
never hold the same delivery, and a worker whose lease has ended cannot write any more.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from time import monotonic

from django.conf import settings

from messaging.domain.accounts.admission import WINDOW
from messaging.domain.deliveries import ClaimedDelivery
from messaging.domain.statuses import Status
from messaging.store import claims as store
from messaging.store import due_organizations
from messaging.store.claims import Claim
from messaging.store.due_organizations import WaitingOrganization
from messaging.telemetry import spans

BATCH_LIMIT = 40 * WINDOW
"""The most deliveries that are claimed at once, to be sent window by window."""
CLAIM_SECONDS = 0.5
"""A claim is as large as can be sent in this time. While a provider is slow, other workers claim
their share, and where there are many organizations, none waits for long.
"""

ORGANIZATIONS = 256
"""The most that `ready` returns."""
FIRST_ORGANIZATIONS = 4
"""The number of organizations in a task's first claim."""

_SEARCH = due_organizations.DueStatement(Status.ACCEPTED, ORGANIZATIONS, by_channel=True)


@dataclass(frozen=True, slots=True)
class ClaimedBatch:
    """The deliveries of one organization on one channel that were claimed together."""

    organization_id: str
    channel: str
    deliveries: Sequence[ClaimedDelivery]
    full: bool
    """Whether there may be more to claim."""
    unreadable: Sequence[ClaimedDelivery] = ()
    """Claimed too, but their rows cannot be read: only their ids and fences are set."""
    until: float = 0.0
    """Half of the lease (monotonic): deliveries that have not been tried by then are released."""


def ready(channel: str, without: Collection[str] = ()) -> list[WaitingOrganization]:
    """Return organizations that have something ready to be sent, in an order fair to all.

    `without` are organizations to leave out.
    """
    return _SEARCH.find(channel, without)


def choose(
    organizations: Sequence[WaitingOrganization], count: int = FIRST_ORGANIZATIONS
) -> list[WaitingOrganization]:
    """Return the organizations to claim of next: at most `count`, all of the first priority.

    They are few, so that a higher priority that arrives meanwhile does not wait for long.
    """
    first = organizations[0].priority
    return [each for each in organizations if each.priority == first][:count]


def next_organizations(count: int, seconds: float) -> int:
    """Return of how many organizations to claim next, if sending those of `count` took `seconds`.

    Of many where each has little to send; of one where that takes all the time.
    """
    return min(max(int(count * CLAIM_SECONDS / max(seconds, 0.001)), 1), ORGANIZATIONS)


def next_size(count: int, seconds: float) -> int:
    """Return how many deliveries to claim next, in whole windows, if `count` took `seconds`."""
    windows = count * CLAIM_SECONDS / max(seconds, 0.001) // WINDOW
    return min(max(int(windows) * WINDOW, WINDOW), BATCH_LIMIT)


def claim(
    organization_id: str, channel: str, priority: int, limit: int = BATCH_LIMIT
) -> ClaimedBatch:
    """Claim the oldest deliveries that are ready, up to a limit, by one transaction."""
    batches = claim_many(channel, priority, {organization_id: limit}, limit)
    return batches[0] if batches else ClaimedBatch(organization_id, channel, [], full=False)


def claim_many(
    channel: str, priority: int, limits: Mapping[str, int], limit: int = BATCH_LIMIT
) -> list[ClaimedBatch]:
    """Claim the oldest deliveries that are ready of several organizations, by one transaction.

    `limits` has how many to claim of each at most, and `limit` of all together. An organization of
    which nothing was claimed has no batch.
    """
    limits = {each: count for each, count in limits.items() if count}
    if not limits:
        return []
    began = monotonic()
    until = began + settings.LEASE_SECONDS / 2
    claimed = store.claim(channel, priority, limits, limit, settings.LEASE_SECONDS)
    if not (claimed.deliveries or claimed.unreadable):
        return []
    spans.claimed(channel, chain.from_iterable(claimed.deliveries.values()), monotonic() - began)
    batches = []
    is_full = claimed.is_cut or sum(_count(claimed, each) for each in limits) == limit
    for organization_id, limit_here in limits.items():
        if count := _count(claimed, organization_id):
            batch = ClaimedBatch(
                organization_id,
                channel,
                claimed.deliveries.get(organization_id, ()),
                is_full or count == limit_here,
                claimed.unreadable.get(organization_id, ()),
                until,
            )
            batches.append(batch)
    return batches


def _count(claimed: Claim, organization_id: str) -> int:
    return len(claimed.deliveries.get(organization_id, ())) + len(
        claimed.unreadable.get(organization_id, ())
    )
