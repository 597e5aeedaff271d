"""Odoo as a platform. Others import `Odoo` from `connector`."""
