"""An organization that sends emails by a service's account, to a server on this machine."""

from typing import Any

import orjson

from messaging.models import ProviderAccount
from messaging.policy import organization_policy
from messaging.providers.anymail.services import ServiceName
from rme.core.cache import TtlCache
from rme.tenants.models import Organization
from tests import factories
from tests.fakes import mail_services
from tests.messaging.feedback.sms_scene import AccountScene, attempt
from tests.rest import Api, message, work


class MailScene(AccountScene):
    """One account and its service."""

    def __init__(self, org: Organization, service: ServiceName = "postmark") -> None:
        self.service = service
        self.status, self.body, self.headers, _ = mail_services.TAKEN[service]
        self.body = self.body.replace(b"to@x.test", b"ada@x.example")
        super().__init__(org)

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

    def call_signed(self, event: Any) -> int:
        """Send a signed callback of the service; return the status of the response."""
        return self.call(mail_services.signed(self.service, self.url, event))

    def last_request(self) -> Any:
        """Return the last request that the service received."""
        return orjson.loads(self.server.seen[-1].body)
