"""Outbound webhooks: endpoints, the outbox, the dispatcher and replays.

Other packages use:

- `changes`: writes the webhook deliveries of other changes
- `device_events`: those of devices
- `endpoints`: subscriptions, secrets, enabling and disabling
- `managed_endpoints`, `endpoint_inputs`: what applications and people do with endpoints
- `delivery_log`: an endpoint's deliveries, and their purge
- `outbox`: what each delivery sends
- `replays`: test events and replays
- `signatures`: new secrets
"""
