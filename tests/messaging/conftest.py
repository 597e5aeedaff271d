"""What several files of these tests send by, and to whom."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from messaging import providers
from messaging.models import ProviderAccount
from messaging.providers.simulator import Simulator
from rme.core.cache import TtlCache
from rme.core.outcomes import Outcome
from rme.core.provider import Content, Dispatch, Progress, no_progress
from rme.crm.models import Contact
from rme.tenants.models import Organization
from rme.transport import Transport
from tests import factories
from tests.messaging.consent.erasure_scene import SECRET
from tests.messaging.delivery.deliver_scene import Scripted
from tests.messaging.feedback import tracking_scene
from tests.messaging.feedback.mail_scene import MailScene
from tests.messaging.feedback.polling_scene import Twilio
from tests.messaging.feedback.sms_scene import Scene
from tests.messaging.webhooks.webhook_scene import Receiver
from tests.rest import Api


@pytest.fixture
def loopback(opened: None) -> None:
    """Let endpoints and providers stand on this machine."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Return a receiver of webhooks that accepts everything."""
    with Receiver() as made:
        yield made


@pytest.fixture
def scene(org: Organization) -> Iterator[Scene]:
    """Return a Twilio account with callbacks, and its gateway."""
    with Scene(org, "twilio") as made:
        yield made


@pytest.fixture
def twilio(org: Organization) -> Iterator[Twilio]:
    """Return a Twilio account that is polled, and its gateway."""
    with Twilio(org) as made:
        yield made


@pytest.fixture
def mail_scene(org: Organization) -> Iterator[MailScene]:
    """Return a Postmark account and its server."""
    with MailScene(org) as made:
        yield made


@pytest.fixture
def own_links(settings: Any) -> None:
    """Let our links lead to Django's test client."""
    settings.BASE_URL = "http://testserver"


@pytest.fixture
def sent_mail(api: Api, mail_scene: MailScene) -> str:
    """Send an email a while ago, and give its message's id."""
    message_id = mail_scene.send(api, **tracking_scene.OWN)
    tracking_scene.sent()
    return message_id


@pytest.fixture
def ada(org: Organization) -> Contact:
    """Return a contact whose values are all SECRET."""
    return factories.contact(
        org, first_name=SECRET, last_name=SECRET, email=f"{SECRET}@simulator.rme.test"
    )


@pytest.fixture
def bob(org: Organization) -> Contact:
    return factories.contact(org, first_name="Bob", email="bob@simulator.rme.test")


class Recorder(Simulator):
    """A simulator that keeps what it is to send."""

    kind = "recorder"
    handed: list[Content] = []

    def send(
        self, dispatches: Sequence[Dispatch], transport: Transport, progress: Progress = no_progress
    ) -> list[Outcome]:
        self.handed.extend(dispatch.content for dispatch in dispatches)
        return super().send(dispatches, transport)


@pytest.fixture
def handed(org: Organization) -> Iterator[list[Content]]:
    """Return the contents that are handed to the organization's provider of email and SMS."""
    providers.REGISTRY["recorder"] = Recorder
    Recorder.handed = []
    for channel in ("EMAIL", "SMS"):
        ProviderAccount.objects.create(
            organization=org, name=f"recorder {channel}", kind="recorder", channel=channel
        )
    TtlCache.clear_all()
    yield Recorder.handed
    del providers.REGISTRY["recorder"]


@pytest.fixture
def script(org: Organization) -> Iterator[Callable[..., ProviderAccount]]:
    """Register the scripted provider; gives a function that adds an account with its answers."""
    providers.REGISTRY["scripted"] = Scripted
    Scripted.sent, Scripted.answers = [], {}

    def add(name: str, *answers: Outcome, **fields: Any) -> ProviderAccount:
        Scripted.answers[name] = list(answers)
        return ProviderAccount.objects.create(
            organization=org,
            name=name,
            kind="scripted",
            channel=fields.pop("channel", "EMAIL"),
            credentials=f'{{"name": "{name}"}}',
            **fields,
        )

    yield add
    del providers.REGISTRY["scripted"]
