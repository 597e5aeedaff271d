"""What the tests of templates share: composing what is ready, as a worker does."""

from collections import deque
from math import inf

from messaging.content.outgoing import OutgoingRenderer
from messaging.delivery import claims, prepare
from messaging.domain.channels import Channel
from messaging.policy import organization_policy


def composed(org, channel=Channel.EMAIL):
    """Claim what is ready and give the texts that would go out, by their recipients' addresses."""
    claim = claims.claim(org.pk, channel, 0)
    preparation = prepare.Preparation(
        claim, organization_policy.of(org.pk), None, OutgoingRenderer()
    )
    hand = preparation.take(deque(claim.deliveries), len(claim.deliveries), inf)
    return {s.address: [content for _, content in s.contents] or s.detail for s in hand}


def sent_text(org, channel=Channel.EMAIL):
    ((only,),) = composed(org, channel).values()
    return only.text
