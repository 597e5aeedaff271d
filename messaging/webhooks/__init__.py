"""Outbound webhooks: endpoints, the outbox, the dispatcher and replays.

Other packages use:

- `events`: writes events together with their webhook deliveries
- `endpoints`: subscriptions, secrets, enabling and disabling
- `delivery_log`: an endpoint's deliveries, and their purge
- `replays`: test events and replays
- `signatures`: new secrets
"""
