"""PDUs compared with two other codecs: smpplib and smpp34."""

from contextlib import suppress

import smpp34
from hypothesis import given
from hypothesis import strategies as st
from smpplib import consts
from smpplib.client import Client
from smpplib.smpp import make_pdu, parse_pdu

from rme.transport.smpp import Address, InvalidPdu, Pdu, ShortMessage, pdu
from rme.transport.smpp.pdu import CommandId, Tag

THEIRS = Client("127.0.0.1", 1, allow_unknown_opt_params=True)
"""Never connected: smpplib takes its numbers from one."""
MESSAGE = ShortMessage(
    Address("Ann", 5, 0),
    Address("12025550123", 1, 1),
    b"\x05\0\3\x01\2\1Hi",
    esm_class=0x40,
    data_coding=8,
    registered_delivery=1,
    service_type="CMT",
    parameters={Tag.SAR_MSG_REF_NUM: b"\0\7", 0x1403: b"theirs"},
)


def test_submit_is_read_by_smpp34() -> None:
    seen = smpp34.decode(Pdu(CommandId.SUBMIT_SM, 7, body=MESSAGE.encode()).encode())
    assert isinstance(seen, smpp34.SubmitSm)
    assert (seen.source_addr, seen.source_addr_ton, seen.source_addr_npi) == ("Ann", 5, 0)
    assert (seen.destination_addr, seen.dest_addr_ton, seen.dest_addr_npi) == ("12025550123", 1, 1)
    assert (seen.short_message, seen.esm_class, seen.data_coding) == (MESSAGE.text, 0x40, 8)
    assert (seen.registered_delivery, seen.service_type) == (1, "CMT")
    assert (seen.sequence_number, seen.protocol_id, seen.priority_flag) == (7, 0, 0)
    assert [(t.tag, t.value) for t in seen.tlvs] == [(0x020C, b"\0\7"), (0x1403, b"theirs")]


def test_submit_is_read_by_smpplib() -> None:
    wire = Pdu(CommandId.SUBMIT_SM, 7, body=MESSAGE.encode()).encode()
    seen = parse_pdu(wire, client=THEIRS, allow_unknown_opt_params=True)
    assert (seen.command, seen.sequence, seen.status) == ("submit_sm", 7, 0)
    assert (seen.source_addr, seen.destination_addr) == (b"Ann", b"12025550123")
    assert (seen.short_message, seen.esm_class, seen.data_coding) == (MESSAGE.text, 0x40, 8)
    assert (seen.registered_delivery, seen.sar_msg_ref_num) == (1, 7)


def test_bind_is_read_by_smpplib() -> None:
    body = pdu.bind("esme", "secret", "VMS", Address("^49", 1, 1))
    seen = parse_pdu(Pdu(CommandId.BIND_TRANSCEIVER, 1, body=body).encode(), client=THEIRS)
    assert (seen.command, seen.system_id, seen.password) == ("bind_transceiver", b"esme", b"secret")
    assert (seen.system_type, seen.interface_version) == (b"VMS", consts.SMPP_VERSION_34)
    assert (seen.addr_ton, seen.addr_npi, seen.address_range) == (1, 1, b"^49")


def test_smpplibs_delivery_is_read() -> None:
    made = make_pdu(
        "deliver_sm",
        client=THEIRS,
        source_addr_ton=1,
        source_addr_npi=1,
        source_addr="12025550123",
        dest_addr_ton=1,
        dest_addr_npi=1,
        destination_addr="12025550100",
        esm_class=4,
        short_message=b"id:1 stat:DELIVRD",
        receipted_message_id="abc",
        message_state=2,
    )
    made.sequence = 9
    buffer = bytearray(made.generate() + b"rest")
    found = pdu.take(buffer)
    assert found is not None
    assert (found.command, found.sequence, bytes(buffer)) == (CommandId.DELIVER_SM, 9, b"rest")
    assert ShortMessage.decode(found.body) == ShortMessage(
        Address("12025550123", 1, 1),
        Address("12025550100", 1, 1),
        b"id:1 stat:DELIVRD",
        esm_class=4,
        parameters={Tag.RECEIPTED_MESSAGE_ID: b"abc\0", Tag.MESSAGE_STATE: b"\2"},
    )


def test_smpp34s_delivery_is_read() -> None:
    payload = smpp34.Tlv(smpp34.TLV_MESSAGE_PAYLOAD, b"x" * 300)
    made = smpp34.DeliverSm("1", "2", sequence_number=3, tlvs=[payload], data_coding=8)
    found = pdu.take(bytearray(made.encode()))
    assert found is not None
    expected = ShortMessage(Address("1"), Address("2"), b"x" * 300, data_coding=8, payload=True)
    assert ShortMessage.decode(found.body) == expected


@given(st.binary(max_size=80))
def test_invalid_bytes_raise_only_invalid_pdu(junk: bytes) -> None:
    for read in (lambda: pdu.take(bytearray(junk)), lambda: ShortMessage.decode(junk)):
        with suppress(InvalidPdu):
            read()


@given(st.binary(max_size=300), st.text(alphabet="0123456789", max_size=20), st.integers(0, 255))
def test_message_round_trip(text: bytes, number: str, octet: int) -> None:
    made = ShortMessage(
        Address(number, octet, octet), Address("1"), text, octet, octet, payload=len(text) > 254
    )
    assert ShortMessage.decode(made.encode()) == made


def test_incomplete_pdu_stays_in_the_buffer() -> None:
    wire = Pdu(CommandId.ENQUIRE_LINK, 5).encode()
    buffer = bytearray()
    for byte in wire[:-1]:
        buffer.append(byte)
        assert pdu.take(buffer) is None
    buffer.append(wire[-1])
    assert (pdu.take(buffer), buffer) == (Pdu(CommandId.ENQUIRE_LINK, 5), bytearray())
