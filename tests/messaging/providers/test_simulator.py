from uuid import UUID

import pytest

from messaging.providers.simulator import Simulator
from rme.core.outcomes import Accepted, Fault, Outcome, Rejected, Retryable, Unknown
from rme.core.provider import Content, Dispatch, Email, ProviderSettings, Push, Sms
from rme.transport import Transport

ATTEMPT = UUID(int=1)
TAKEN = f"simulated-{ATTEMPT}"
EXPECTED: dict[str, Outcome] = {
    "delivered": Accepted(TAKEN, ("delivered", "open")),
    "bounce": Accepted(TAKEN, ("bounced",)),
    "complaint": Accepted(TAKEN, ("delivered", "complained")),
    "slow": Accepted(TAKEN, ("delivered",)),
    "down": Retryable("simulated: the provider is down"),
    "reject": Rejected("simulated: refused", Fault.CONTENT),
    "unknown": Unknown("simulated: no answer"),
}
OTHERWISE = Accepted(TAKEN, ("delivered",))


def email(to: str) -> Email:
    return Email(to, "from@x.test", "", "Hello", "Hi")


def push(token: str) -> Push:
    return Push(token, "IOS", "Hello", "Hi")


def send(transport: Transport, *contents: Content) -> tuple[list[Outcome], list[float]]:
    slept: list[float] = []
    simulator = Simulator(ProviderSettings(), sleep=slept.append)
    return simulator.send(
        [Dispatch(str(ATTEMPT), content) for content in contents], transport
    ), slept


@pytest.mark.promise("answer-14")
@pytest.mark.parametrize(("place", "word"), list(enumerate(EXPECTED, start=1)))
def test_simulator_address_determines_the_outcome(
    transport: Transport, place: int, word: str
) -> None:
    outcomes, slept = send(
        transport,
        email(f"{word}@simulator.rme.test"),
        Sms(f"+1500555000{place}", "Hi"),
        push(f"a1b2-simulator-{word}-c3"),
    )
    assert outcomes == [EXPECTED[word]] * 3
    assert slept == ([5.0] if word == "slow" else [])


@pytest.mark.promise("answer-14")
@pytest.mark.parametrize(
    "content",
    [
        email("someone@x.test"),
        email("other@simulator.rme.test"),
        email("bounce@simulator.rme.test.evil.test"),
        email("bounce@x.simulator.rme.test"),
        Sms("+1500555000", "Hi"),
        Sms("+15005550000", "Hi"),
        Sms("+15005550008", "Hi"),
        Sms("+150055500012", "Hi"),
        Sms("+12025550123", "Hi"),
        push("bounce"),
        push("simulator-"),
        push("simulator-other"),
    ],
)
def test_any_other_address_is_sent_and_delivered(transport: Transport, content: Content) -> None:
    assert send(transport, content) == ([OTHERWISE], [])


def test_slow_ones_of_a_window_are_slow_together(transport: Transport) -> None:
    slow, other = email("slow@simulator.rme.test"), email("x@y.test")
    outcomes, slept = send(transport, slow, other, slow, slow)
    assert outcomes == [EXPECTED["slow"], OTHERWISE, EXPECTED["slow"], EXPECTED["slow"]]
    assert slept == [5.0]
