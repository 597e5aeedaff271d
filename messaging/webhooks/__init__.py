"""Outbound webhooks: endpoints, the outbox, the dispatcher and replays.

Other packages use:

- `events`: writes events of messages together with their webhook deliveries
- `changes`: writes the webhook deliveries of other changes
- `device_events`: those of devices
- `endpoints`: subscriptions, secrets, enabling and disabling
- `managed_endpoints`, `endpoint_inputs`: what applications do with endpoints by REST
- `delivery_log`, `payloads`: an endpoint's deliveries, what each sends, and their purge
- `replays`: test events and replays
- `signatures`: new secrets
"""
