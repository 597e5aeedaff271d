"""The admin of a superuser."""

from tests.tenants.admin.conftest import root

__all__ = ["root"]
