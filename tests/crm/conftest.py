"""Fixtures for tests of platforms."""

from tests.crm.opened import opened

__all__ = ["opened"]
