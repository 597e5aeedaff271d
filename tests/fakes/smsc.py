"""An independent SMSC on loopback: the server of smpp34, which is written in Rust."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, Self

import smpp34

from tests.fakes.tcp import free_port

Decide = Callable[[smpp34.SubmitSmEvent], int | None]
"""Returns the status that a message is refused with, 0 to accept it, or None for no answer."""


class Smsc:
    """Accept binds and messages while the context is open; message ids are `m1`, `m2` and so on."""

    def __init__(self, decide: Decide = lambda event: 0) -> None:
        self.decide = decide
        self.port = free_port()
        self.taken: list[smpp34.SubmitSmEvent] = []
        self.unanswered: list[smpp34.SubmitSmEvent] = []
        self.binds = 0
        self.sessions: dict[str, smpp34.Esme] = {}
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._serving.cancel)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        with contextlib.suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._serving = asyncio.current_task()
        assert self._serving is not None
        self._server = smpp34.Server("127.0.0.1", self.port, system_id="SMSC")
        await self._server.start()
        self._ready.set()
        while True:
            event = await self._server.next()
            if isinstance(event, smpp34.Esme):
                self.binds += 1
                self.sessions[event.session_id] = event
            elif isinstance(event, smpp34.SubmitSmEvent):
                self._answer(event)
            else:
                self.sessions.pop(event.session_id, None)

    def _answer(self, event: smpp34.SubmitSmEvent) -> None:
        status = self.decide(event)
        if status is None:
            self.unanswered.append(event)
        elif status:
            event.reject(status)
        else:
            self.taken.append(event)
            event.accept(f"m{len(self.taken)}")

    def _do(self, begin: Callable[[], Awaitable[Any]]) -> Any:
        async def work() -> Any:
            return await begin()  # the library's coroutines begin within its loop alone

        return asyncio.run_coroutine_threadsafe(work(), self._loop).result(10)

    def esme(self, seconds: float = 20.0) -> smpp34.Esme:
        """Return the session that was bound last, when there is one."""
        wait_for(lambda: bool(self.sessions), seconds)
        return list(self.sessions.values())[-1]

    def deliver(self, text: bytes = b"", **fields: Any) -> smpp34.DeliverSmResp:
        """Deliver to the ESME that was bound last, and give its answer."""
        given = {"source_addr": "12025550123", "source_addr_ton": 1, "source_addr_npi": 1, **fields}
        esme = self.esme()
        return self._do(lambda: esme.deliver_sm("12025550100", text, **given))

    def receipt(self, message_id: str, stat: str = "DELIVRD", **fields: Any) -> int:
        """Deliver a receipt in the text form of appendix B, and give the status of the answer."""
        text = (
            f"id:{message_id} sub:001 dlvrd:001 submit date:2611211200 done date:2611211201 "
            f"stat:{stat} err:{fields.pop('err', '000')} text:hello"
        )
        answer = self.deliver(text.encode(), esm_class=0x04, **fields)
        return int(answer.command_status)

    def stop(self) -> None:
        """Go away: no port, no connections."""
        self._do(self._server.stop)
        wait_for(lambda: not self._listens())  # the server's own threads close the port

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def unbind(self) -> None:
        """Unbind every ESME."""
        for session in list(self.sessions.values()):
            self._do(session.unbind)


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until something holds."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it never came to be"
        time.sleep(0.005)
