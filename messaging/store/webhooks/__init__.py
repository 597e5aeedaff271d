"""Webhook deliveries in the database.

- `queue`: new deliveries, for the endpoints that subscribe
- `claims`: claims of endpoints' queues, and results
- `contents`: the event that a delivery tells
- `replays`: past events, queued again
"""
