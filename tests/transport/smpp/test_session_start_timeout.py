"""A full window at the start time-out: waiting requests end, answers so far are reported."""

import socket
import threading

from rme.transport import NOT_STARTED
from rme.transport.smpp.pdu import Pdu
from tests.fakes.smpp import SmppServer, accept
from tests.fakes.tcp import TIME_OUT
from tests.transport.smpp.session_scene import BODY, POLICY, client, statuses


def test_requests_waiting_for_the_window_end_as_not_started() -> None:
    go, reports = threading.Event(), []
    count = iter(range(100))

    def slow(connection: socket.socket, request: Pdu) -> None:
        if next(count) >= 3:  # the bind is one
            go.wait(10)
        accept(connection, request)

    def report(answers: object) -> None:
        reports.append(answers)
        go.set()

    with SmppServer(otherwise=slow) as server:
        made = client(server.port, window=3)
        answers = made.submit([BODY] * 12, POLICY, TIME_OUT, report)
        assert answers[5:] == [NOT_STARTED] * 7
        assert statuses(answers[:5]) == [0] * 5
        ((*first,),) = reports
        assert statuses(first[:2]) == [0, 0]
        assert first[2:] == [None] * 3 + [NOT_STARTED] * 7
        assert statuses(made.submit([BODY] * 12, POLICY, 5.0)) == [0] * 12
