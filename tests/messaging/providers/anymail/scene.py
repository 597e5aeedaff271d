"""An account at an email service, and an email that it is to send."""

from messaging.providers.anymail import Anymail, AnymailSettings
from messaging.providers.anymail.services import SERVICES, ServiceName
from rme.core.outcomes import Outcome
from rme.core.provider import Dispatch, Email
from rme.transport import Transport
from tests.fakes import http1, mail_services
from tests.fakes.http1 import Http1Server, Seen
from tests.messaging.providers.accounts import ATTEMPT

NAMES = sorted(SERVICES)
UNSUBSCRIBE = {
    "List-Unsubscribe": "<https://rme.example/p/u/x>",
    "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
}
EMAIL = Email(
    "to@x.test",
    "from@y.test",
    'Ann "Ü", Co\r\nBcc: evil@x.test',
    "Hello\nX: y",
    "Hi \ud800 text",
    "<p>Hi html</p>",
    to_name="To, Me",
    headers=UNSUBSCRIBE,
)


def account(service: ServiceName, **given: str) -> Anymail:
    return Anymail(AnymailSettings.model_validate({**mail_services.settings(service), **given}))


def ask(
    transport: Transport,
    service: ServiceName,
    status: int,
    body: bytes = b"",
    headers: dict[str, str] | None = None,
    email: Email = EMAIL,
) -> tuple[Outcome, list[Seen]]:
    """Send one email to a server that gives this answer."""
    with Http1Server(lambda c, _: http1.respond(c, status, body, headers)) as server:
        own = account(service, base_url=f"{server.url}v1")
        (outcome,) = own.send([Dispatch(str(ATTEMPT), email)], transport)
    return outcome, server.seen
