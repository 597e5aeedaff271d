"""The end of a log-in in all cells."""

from typing import Any

from django.contrib.auth.signals import user_logged_out
from django.dispatch import receiver
from django.http import HttpRequest

from rme.cells.people import answers
from rme.tenants import audit
from rme.tenants.access import sessions
from rme.tenants.models import User


@receiver(user_logged_out)
def _logged_out(request: HttpRequest, user: User | None, **_: Any) -> None:
    if user is not None and user.is_authenticated:
        answers.log_out_elsewhere(audit.person_behind(request).person, sessions.chain(request))
