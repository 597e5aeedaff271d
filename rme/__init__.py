"""rme: messaging, push and bot integration beside an organization's CRM."""

__version__ = "0.1.0"
