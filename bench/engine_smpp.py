"""SMS to an SMSC on this machine, with PDUs written and read by smpplib in place of our own."""

import sys
import time
from typing import Any

from bench.accepting import accept_in_process
from bench.scene import Scene

TEXT = "Grüezi {{ contact.first_name }}, your order has left Zürich. {{ note }}"
WINDOW = 100


def use() -> None:
    """Have this process write and read PDUs by smpplib."""
    from smpplib.client import Client
    from smpplib.smpp import make_pdu, parse_pdu

    from rme.transport.smpp import pdu

    client = Client("127.0.0.1", 1, allow_unknown_opt_params=True)  # only for its numbers

    def encode(self: Any) -> bytes:
        made = make_pdu(
            "submit_sm",
            client=client,
            service_type=self.service_type,
            source_addr_ton=self.source.ton,
            source_addr_npi=self.source.npi,
            source_addr=self.source.text,
            dest_addr_ton=self.destination.ton,
            dest_addr_npi=self.destination.npi,
            destination_addr=self.destination.text,
            esm_class=self.esm_class,
            registered_delivery=self.registered_delivery,
            data_coding=self.data_coding,
            short_message=self.text,
        )
        return bytes(made.generate()[16:])

    def take(buffer: bytearray) -> Any:
        length = int.from_bytes(buffer[:4], "big")
        if len(buffer) < 16 or len(buffer) < length:
            return None
        data = bytes(buffer[:length])
        del buffer[:length]
        seen = parse_pdu(data, client=client, allow_unknown_opt_params=True)
        command = int.from_bytes(data[4:8], "big")
        return pdu.Pdu(command, seen.sequence, seen.status, data[16:])

    pdu.ShortMessage.encode = encode  # type: ignore[method-assign]
    pdu.take = take


def prepare(scene: Scene, port: int) -> None:
    """Let the organization's SMS go to an SMSC on this machine, and give its contacts numbers."""
    from django.db import connection

    from messaging.content import templates
    from messaging.models import ProviderAccount, Template

    settings = f'{{"host": "127.0.0.1", "port": {port}, "system_id": "bench", "window": {WINDOW}}}'
    ProviderAccount.objects.update_or_create(
        organization_id="bench",
        name="smsc",
        defaults={"kind": "smpp", "channel": "SMS", "credentials": settings},
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE crm_contact SET mobile = '+4179' || (2000000 + substr(first_name, 2)::int)"
            " WHERE organization_id = 'bench'"
        )
    if not Template.objects.filter(organization_id="bench", channel="SMS").exists():
        template = Template.objects.create(
            organization_id="bench",
            name="note",
            language="en_US",
            channel="SMS",
            category="TRANSACTIONAL",
        )
        templates.activate(templates.add_draft(template, {"text": TEXT}))


def accept(scene: Scene, count: int) -> None:
    """Let SMS wait in the database, and nothing else."""
    scene.clear()
    accept_in_process(scene, count, lambda index: {**scene.body(index), "channel": "SMS"})


def alone(count: int) -> dict[str, float]:
    """Return the seconds that writing some `submit_sm` and reading their responses takes."""
    from rme.transport.smpp import Address, Pdu, ShortMessage, pdu

    message = ShortMessage(Address("Bench", 5), Address("41792000000", 1, 1), b"x" * 120)
    response = Pdu(0x80000004, 7, 0, b"id7\0").encode()
    started = time.process_time()
    for _ in range(count):
        Pdu(4, 7, body=message.encode()).encode()
        pdu.take(bytearray(response))
    took = time.process_time() - started
    return {"wall": took, "cpu": took, "count": count}


def serve(port: int) -> None:
    """Accept SMS as an SMSC, without keeping them, until the process is ended."""
    import asyncio

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        buffer = b""
        while part := await reader.read(65536):
            buffer += part
            out, start = [], 0
            while len(buffer) - start >= 16:
                length = int.from_bytes(buffer[start : start + 4], "big")
                if len(buffer) - start < length:
                    break
                command = 0x80 | buffer[start + 4]
                number = buffer[start + 12 : start + 16]
                body = (
                    b"" if buffer[start + 7] in (0x06, 0x15) else b"%x\0" % int.from_bytes(number)
                )
                head = (16 + len(body)).to_bytes(4, "big") + bytes([command])
                out.append(head + buffer[start + 5 : start + 8] + bytes(4) + number + body)
                start += length
            buffer = buffer[start:]
            writer.write(b"".join(out))

    async def run() -> None:
        server = await asyncio.start_server(talk, "127.0.0.1", port)
        await server.serve_forever()

    asyncio.run(run())


if __name__ == "__main__":
    serve(int(sys.argv[1]))
