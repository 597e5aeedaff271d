"""Outbound webhooks: endpoints, outbox, dispatcher, replay."""
