"""Clients of an SMSC, and requests over them."""

import socket
from typing import Any

from rme.transport import AddressPolicy, Failure, smpp
from rme.transport.smpp.pdu import Address, Pdu, ShortMessage
from rme.transport.smpp.pending import Answer

POLICY = AddressPolicy(["127.0.0.1"])
BODY = ShortMessage(Address("1"), Address("2"), b"Hi").encode()


def client(port: int, **given: Any) -> smpp.SmppClient:
    settings = {"timeout": 5.0, **given}
    return smpp.client_for(smpp.Login("127.0.0.1", port, "esme", "secret", **settings))


def submit(port: int, count: int = 1, **given: Any) -> list[Answer]:
    return client(port, **given).submit([BODY] * count, POLICY)


def statuses(answers: list[Answer]) -> list[object]:
    return [a.kind if isinstance(a, Failure) else a.status for a in answers]


def never(connection: socket.socket, request: Pdu) -> None:
    """Do not answer."""
