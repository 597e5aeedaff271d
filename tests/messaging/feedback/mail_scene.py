"""An organization that sends emails by a service's account, to a server on this machine."""

from typing import Any

import orjson

from messaging.feedback import callbacks
from messaging.models import ProviderAccount
from messaging.policy import organization_policy
from messaging.providers.anymail.services import ServiceName
from rme.core.cache import TtlCache
from rme.tenants.models import Organization
from rme.transport import AddressPolicy, Transport
from tests import factories
from tests.fakes import http1, mail_services
from tests.fakes.http1 import Http1Server
from tests.fakes.providers import Call
from tests.messaging.feedback.sms_scene import attempt, post
from tests.rest import Api, message, work


class MailScene:
    """One account and its service."""

    def __init__(self, org: Organization, service: ServiceName = "postmark") -> None:
        self.service = service
        self.status, self.body, self.headers, _ = mail_services.TAKEN[service]
        self.body = self.body.replace(b"to@x.test", b"ada@x.example")
        self.server = Http1Server(
            lambda c, _: http1.respond(c, self.status, self.body, self.headers)
        )
        self.transport = Transport(AddressPolicy(["127.0.0.1"]))
        self.org = org

    def __enter__(self) -> "MailScene":
        self.server.__enter__()
        settings = mail_services.settings(self.service, base_url=self.server.url)
        self.account = ProviderAccount.objects.create(
            organization=self.org,
            name=self.service,
            kind="anymail",
            channel="EMAIL",
            credentials=orjson.dumps(settings).decode(),
        )
        organization_policy.forget(self.org.pk)
        TtlCache.clear_all()
        return self

    def __exit__(self, *error: object) -> None:
        self.transport.close()
        self.server.__exit__(*error)

    @property
    def url(self) -> str:
        receiver = callbacks.find_account(self.account.public_id)
        assert receiver is not None
        return receiver.url

    def person(self, **fields: Any) -> Any:
        return factories.contact(self.org, **{"email": "ada@x.example", **fields})

    def send(self, api: Api, person: Any = None, **fields: Any) -> str:
        """Send an email to a person and give its message's id."""
        answer = api.send(message(person or self.person(), **fields))
        assert answer.status_code == 202, answer.content
        work(self.transport)
        return str(answer.json()["messageId"])

    def report(self, word: str, attempt_id: Any = None) -> int:
        """Let the service report on an attempt, and give the status of our answer."""
        return self.call(
            mail_services.report(self.service, self.url, attempt_id or attempt(), word)
        )

    def tell(self, said: Any) -> int:
        """Send a signed callback of the service; return the status of the response."""
        return self.call(mail_services.signed(self.service, self.url, said))

    def call(self, call: Call) -> int:
        return post(self.account.public_id, call)

    def said(self) -> Any:
        """Return the last request that the service received."""
        return orjson.loads(self.server.seen[-1].body)
