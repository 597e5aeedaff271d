"""Tokens of two devices, and a sender to Apple."""

from tests.push.providers.attempts import provider

TOKEN = "ab" * 32
OTHER = "cd" * 32


def made(service, **given):
    return provider("apns", service.settings(**given))
