"""Messages: /messages, /messages/bulk and /messages/{id}."""

from messaging.api.messages.history import ListMessages, ReadMessage
from messaging.api.messages.sending import BulkView, CancelMessage, SendMessage
from messaging.api.messages.single_sends import SINGLE_SENDS

__all__ = ["SINGLE_SENDS", "BulkView", "MessageView", "MessagesView"]


class MessagesView(SendMessage, ListMessages):
    """Send messages, and query them."""


class MessageView(ReadMessage, CancelMessage):
    """Read one message, and cancel it."""
