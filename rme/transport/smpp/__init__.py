"""SMPP 3.4 as an ESME: PDUs, bound sessions, and the clients of this process.

The protocol is the SMPP v3.4 specification, issue 1.2; sections named here are its own. Other
packages import from here, and `pdu` (what a provider reads of a PDU), `pending` and
`text_encoding`.
"""

from rme.transport.smpp.clients import Login, SmppClient, client_for, close_all
from rme.transport.smpp.pdu import Address, InvalidPdu, Pdu, ShortMessage
from rme.transport.smpp.session import DeliveryHandler

__all__ = [
    "Address",
    "DeliveryHandler",
    "InvalidPdu",
    "Login",
    "Pdu",
    "ShortMessage",
    "SmppClient",
    "client_for",
    "close_all",
]
