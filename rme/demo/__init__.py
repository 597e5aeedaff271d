"""What `make run` finds in a new installation: two organizations, and `SMTP_URL`'s mail server."""

from rme.demo.mail_server import use as use_mail_server
from rme.demo.organization import ensure

__all__ = ["ensure", "use_mail_server"]
