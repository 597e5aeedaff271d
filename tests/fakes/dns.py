"""A DNS server on loopback, over UDP, with TXT and CNAME records that a test gives it."""

import socket
import threading
from collections.abc import Mapping, Sequence

import dns.flags
import dns.message
import dns.rcode
import dns.rrset

Zone = Mapping[str, Sequence[str] | str]
"""By name: TXT records, or the name that a CNAME leads to."""


class DnsServer:
    """Answers from a zone; names that are not there do not exist. `silent` names get no answer."""

    def __init__(self, zone: Zone, silent: Sequence[str] = ()) -> None:
        self.zone, self.silent = zone, silent
        self.asked: list[str] = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def address(self) -> str:
        host, port = self._socket.getsockname()
        return f"{host}:{port}"

    def __enter__(self) -> "DnsServer":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
            end.sendto(b"", self._socket.getsockname())
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while True:
            request, sender = self._socket.recvfrom(4096)
            if not request:
                return
            query = dns.message.from_wire(request)
            name = query.question[0].name.to_text(omit_final_dot=True)
            self.asked.append(name)
            if name not in self.silent:
                self._socket.sendto(self._answer(query, name).to_wire(), sender)

    def _answer(self, query: dns.message.Message, name: str) -> dns.message.Message:
        response = dns.message.make_response(query)
        response.flags |= dns.flags.RA
        found = self.zone.get(name)
        while isinstance(found, str):
            response.answer.append(dns.rrset.from_text(f"{name}.", 60, "IN", "CNAME", f"{found}."))
            name, found = found, self.zone.get(found)
        if found is None:
            response.set_rcode(dns.rcode.NXDOMAIN)
        elif found:
            texts = [" ".join(f'"{part}"' for part in each.split("|")) for each in found]
            response.answer.append(dns.rrset.from_text(f"{name}.", 60, "IN", "TXT", *texts))
        return response
