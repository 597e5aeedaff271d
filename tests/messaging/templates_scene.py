"""What the tests of templates share: composing what is ready, as a worker does."""

from messaging import claiming, policy, preparing
from messaging.outcome import Sending
from rme.core.channels import Channel


def composed(org, channel=Channel.EMAIL):
    """Claim what is ready and give the texts that would go out, by their recipients' addresses."""
    claim = claiming.claim(org.pk, channel, 0)
    rules = policy.of(org.pk)
    hand = [Sending(claimed, rules.rules(claimed.category)) for claimed in claim.deliveries]
    preparing.prepare(claim, hand, rules)
    return {s.address: [content for _, content in s.contents] or s.detail for s in hand}


def sent_text(org, channel=Channel.EMAIL):
    ((only,),) = composed(org, channel).values()
    return only.text
