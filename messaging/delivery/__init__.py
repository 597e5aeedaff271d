"""Claim, prepare, send and record deliveries; failover and fallback; the sweeper.

Other packages use:

- `wakeups`: wakes the workers of a channel
- `accounts`: routes, and whether an account takes sends now
- `manual_review`: deliveries with an unknown outcome that a person decides

The way of a batch: `tasks` → `claims` → `deliver` (the send loop), which prepares (`prepare`),
records (`record`), hands over (`in_flight`) and applies outcomes (`outgoing`, by
`messaging.domain.progress.next_steps`).
"""
