"""The admin of a superuser."""

from tests.admin.conftest import root

__all__ = ["root"]
