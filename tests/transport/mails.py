"""Mails for the transport's tests, and a summary of their results."""

from rme.transport import Envelope, Failure, FailureKind, MailSecurity, Reply, Request, Stage
from tests.fakes import tcp
from tests.fakes.tls import ca_pem

MESSAGE = b"Subject: x\r\n\r\n.hello\r\n..\r\nbye\r\n"
NOT_SENT, UNKNOWN = FailureKind.NOT_SENT, FailureKind.UNKNOWN


def mail(
    server: tcp.TcpServer,
    body: bytes = MESSAGE,
    security: MailSecurity = MailSecurity.NONE,
    username: str = "",
    trust: str | None = None,
    wait: float = 5.0,
) -> Request:
    scheme = "smtps" if security is MailSecurity.TLS else "smtp"
    return Request(
        f"{scheme}://localhost:{server.port}/me.test",
        body,
        envelope=Envelope("a@x.test", ("b@y.test",), security, username, "secret"),
        connect_timeout=wait,
        timeout=wait,
        ca_pem=ca_pem() if trust is None else trust,
    )


def summary(result: Reply | Failure) -> tuple[object, int, Stage | None]:
    first = result.kind if isinstance(result, Failure) else Reply
    return first, result.status, result.stage
