"""SMPP 3.4 as an ESME: the PDUs, a bound link, and the lines of this process that keep one.

The protocol is the SMPP v3.4 specification, issue 1.2; paragraphs named here are its own.
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
