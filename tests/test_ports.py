"""Ports are claimed, so that tests in several processes choose different ones."""

import multiprocessing
import socket

import pytest

from tests import ports
from tests.ports import free_port


def _claim(results, done):
    results.put([free_port() for _ in range(20)])
    done.wait(30)


def test_processes_choose_different_ports(monkeypatch):
    monkeypatch.setattr(ports, "_PORTS", range(16_000, 32_000, 160))  # few more than are chosen
    context = multiprocessing.get_context("fork")
    results, done = context.Queue(), context.Event()
    others = [context.Process(target=_claim, args=(results, done)) for _ in range(3)]
    for each in others:
        each.start()
    chosen = [port for _ in others for port in results.get(timeout=30)]
    done.set()
    for each in others:
        each.join()
    assert len(set(chosen)) == len(chosen) == 60


def test_port_is_not_chosen_twice_nor_while_another_listens(monkeypatch):
    monkeypatch.setattr(ports, "_PORTS", (first := free_port(), second := free_port()))
    monkeypatch.setattr(ports, "_own", {first})
    with socket.create_server(("127.0.0.1", second)), pytest.raises(AssertionError):
        free_port()
    assert free_port() == second
    with pytest.raises(AssertionError):
        free_port()
