"""Servers on loopback that stand behind the transport: whole ones, slow ones and broken ones."""

NO_TRANSPORT = None
"""Passed where nobody may be called."""
