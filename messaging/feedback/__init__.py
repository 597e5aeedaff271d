"""Provider callbacks, receipts, inbound SMS, polling and tracking."""
