"""An SMTP account on this machine, for the provider's tests."""

from typing import Any
from uuid import UUID

from messaging.providers.smtp import Smtp
from rme.core.outcomes import Fault, Misconfigured, OptOut, Outcome, Rejected, Retryable
from rme.core.provider import Dispatch, Email
from rme.transport import Transport
from tests.fakes import smtp
from tests.fakes.smtp import SmtpServer

ATTEMPT = UUID(int=1)


def email_dispatch(number: int = 1, to: str = "to@x.test") -> Dispatch:
    content = Email(to, "from@y.test", "Ann", "Hello", "Hi", message_id=f"{number}@y.test")
    return Dispatch(str(ATTEMPT), content)


def provider(port: int, **given: Any) -> Smtp:
    settings = {"host": "localhost", "port": port, "security": "NONE", "timeout": 5, **given}
    return Smtp(Smtp.Settings.model_validate(settings))


def outcome_of(transport: Transport, script: dict[str, smtp.Step], **given: Any) -> Outcome:
    with SmtpServer(script) as server:
        (outcome,) = provider(server.port, **given).send([email_dispatch()], transport)
    return outcome


def kind_of(outcome: Outcome) -> tuple[object, ...]:
    if isinstance(outcome, Rejected):
        opt_outs = (outcome.opt_out,) if outcome.opt_out else ()
        return Rejected, outcome.fault, outcome.hard, *opt_outs
    if isinstance(outcome, Retryable) and not outcome.blames_account:
        return Retryable, "the account works for others"
    return (type(outcome),)


LATER = (Retryable,)
MESSAGE_LATER = (Retryable, "the account works for others")
ELSEWHERE = (Rejected, Fault.ROUTE, False)
STOPPED = (Rejected, Fault.RECIPIENT, False, OptOut.STOP)
SET_UP = (Misconfigured,)
DEAD = (Rejected, Fault.RECIPIENT, True)
RECIPIENT = (Rejected, Fault.RECIPIENT, False)
CONTENT = (Rejected, Fault.CONTENT, False)
