"""SMPP 3.4 as an ESME: the PDUs, a bound link, and the lines of this process that keep one.

The protocol is the SMPP v3.4 specification, issue 1.2; paragraphs named here are its own.
"""

from rme.transport.smpp.clients import Line, Login, close_all, line
from rme.transport.smpp.pdu import Address, Message, Pdu, Senseless
from rme.transport.smpp.session import Hear

__all__ = [
    "Address",
    "Hear",
    "Line",
    "Login",
    "Message",
    "Pdu",
    "Senseless",
    "close_all",
    "line",
]
