"""Long answers are whole, however slowly their clients take them."""

import asyncio

import pytest

from rme.core import errors
from rme.core.http.serving.long_answers import (
    PIECE,
    ROOM,
    Abandoned,
    LongAnswer,
    Room,
    require_room,
)


async def transfer(pieces, *, room, idle_seconds, piece_seconds, slowest=PIECE, received=None):
    """Send an answer to a client that takes a piece in some time; return what it got."""
    loop = asyncio.get_running_loop()
    answer = LongAnswer(Room(2 * room * PIECE), "acme", idle_seconds, loop, slowest)
    received = bytearray() if received is None else received

    def write():
        try:
            for number in range(pieces):
                answer.write(bytes([number]) * PIECE)
        finally:
            answer.end()

    async def take(piece):
        await asyncio.sleep(piece_seconds)
        received.extend(piece)

    writing = asyncio.create_task(asyncio.to_thread(write))
    try:
        await answer.send(take)
    finally:
        await asyncio.gather(writing, return_exceptions=True)
    return received


def test_slow_client_gets_a_complete_answer_larger_than_the_room():
    # What is in the file takes 2 s, longer than the client may take for one piece.
    received = asyncio.run(transfer(45, room=20, idle_seconds=1.5, piece_seconds=0.1))
    assert received == b"".join(bytes([number]) * PIECE for number in range(45))


def test_answer_ends_when_the_client_reads_nothing():
    with pytest.raises(Abandoned):
        asyncio.run(transfer(45, room=20, idle_seconds=0.3, piece_seconds=5))


def test_answer_is_abandoned_when_a_waiting_thread_needs_a_faster_client():
    received = bytearray()
    with pytest.raises(Abandoned):
        asyncio.run(
            transfer(
                45,
                room=20,
                idle_seconds=2.0,
                piece_seconds=0.4,
                slowest=100 * PIECE,
                received=received,
            )
        )
    assert PIECE <= len(received) < 20 * PIECE


def test_owner_without_room_is_rejected_before_any_work():
    room = Room(4 * PIECE)
    environ = {ROOM: room}
    require_room(environ, "acme")
    assert room.take("acme", 2 * PIECE)
    with pytest.raises(errors.RateLimited, match="unfinished downloads") as refusal:
        require_room(environ, "acme")
    assert refusal.value.headers == {"Retry-After": "10"}
    require_room(environ, "other")
    assert room.take("other", 2 * PIECE)
    with pytest.raises(errors.RateLimited):
        require_room(environ, "third")
    room.give("acme", 2 * PIECE)
    require_room(environ, "acme")
    require_room({}, "acme")  # another server has no room
