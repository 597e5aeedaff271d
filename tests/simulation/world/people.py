"""What people do in a history: cancel, object in several ways, pause, and review."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf
from random import Random
from uuid import UUID

from django.db import DatabaseError, InterfaceError

from messaging.accept import cancel
from messaging.consent import ledger, suppressions
from messaging.consent.ledger import ConsentDecision
from messaging.consent.suppressions import NewSuppression
from messaging.delivery import manual_review
from messaging.delivery.manual_review import Decision
from messaging.domain.statuses import Status
from messaging.feedback.sms_parts import ReceivedSms
from messaging.links import PreferenceLink
from messaging.models import ConsentEntry, Delivery, Pause
from messaging.pages import preference_changes, preferences
from messaging.policy import pausing
from rme.core import errors
from rme.crm.models import Contact
from rme.tenants.audit import COMMAND_LINE
from tests.simulation.world.callers import SPAN_SECONDS, Callers
from tests.simulation.world.database import ORGANIZATION
from tests.simulation.world.provider import Report, World
from tests.simulation.world.turns import Turns, current

DECISIONS = 3
"""How many decisions a history has."""
CHANNELS = ("EMAIL", "SMS", "PUSH")
NEEDS_CONSENT = ("NEWS", "OFFERS")
TEXTS = ("STOP", "STOP", "stop ", "START", "START", "HELP", "Hello")
STOPS, STARTS = ("STOP", "stop "), ("START",)
AT_CHECK = 0.5
"""How many decisions wait until a worker is about to send."""
REVIEWED = 0.5
"""In how many histories the deliveries in manual review are decided once all rests."""
_UNDECIDED = (Status.UNKNOWN, Status.SENT, Status.SENDING, Status.DELIVERED)


@dataclass(frozen=True)
class Objection:
    """What a person no longer wants, and since when that is committed."""

    contact_id: str
    channel: str
    category: str | None
    """None: an address that is suppressed, for all categories."""
    at: float
    until: float = inf
    """When the person may have agreed again."""


class People:
    """The recipients and the administrators, and what they did."""

    def __init__(self, rng: Random, callers: Callers, world: World, people: Sequence[Contact]):
        self._rng, self._callers, self._world, self._people = rng, callers, world, people
        self._turns: Turns = world.turns
        self.objections: list[Objection] = []
        self.cancelled: list[str] = []
        self.keywords: set[tuple[str, str, int]] = set()
        """The SMS that ask for an end, or a new beginning: sender, text, and its number."""
        self._stopped_at: dict[str, datetime] = {}
        """When the last STOP of each number arrived that was applied."""
        self.has_reviewed = False
        """Whether somebody decided twice at rest."""
        self.repeated_reviews: list[str] = []
        """Deliveries that a second decision changed although the first had."""
        self.reviews_at_rest = rng.random() < REVIEWED
        kinds: dict[Callable[[], None], int] = {
            self._cancel: 3,
            self._opt_out: 3,
            self._opt_in: 2,
            self._suppress: 2,
            self._pause: 2,
            self._write_sms: 3,
            self._use_preference_page: 3,
            self.review: 1,
        }
        self._decisions = rng.choices(list(kinds), list(kinds.values()), k=DECISIONS)

    @property
    def started(self) -> set[str]:
        """Return the numbers from which START was written."""
        return {sender for sender, text, _ in self.keywords if text in STARTS}

    @property
    def has_work(self) -> bool:
        return bool(self._decisions)

    def run(self) -> None:
        """Make decisions at some times, each until it is committed."""
        while self._decisions:
            self._turns.sleep(self._rng.uniform(0, SPAN_SECONDS / 2))
            if self._rng.random() < AT_CHECK:
                self._turns.wait(lambda: self._turns.is_checking, SPAN_SECONDS / 2)
            try:
                self._decisions[-1]()
            except (DatabaseError, InterfaceError) as error:
                self._callers.after_failure(error)
                continue
            self._decisions.pop()

    def _message_id(self) -> str | None:
        """Return the id of one of the accepted messages, which is that of its delivery, too."""
        accepted = [each for each in self._callers.sendings if each.answers]
        return self._rng.choice(accepted).answers[0] if accepted else None

    def _cancel(self) -> None:
        message_id = self._message_id()
        if message_id is None:
            return
        try:
            cancel.cancel(ORGANIZATION, message_id)
        except errors.NotCancellable:
            self._turns.note("not cancellable")
        else:
            self._turns.note("cancelled")
            self.cancelled.append(message_id)

    # --- objections -----------------------------------------------------------------------------

    def _target(self) -> tuple[Contact, str, str]:
        """Return a person, a channel and a category: most often those of a message."""
        rng = self._rng
        some = [each.request for each in self._callers.sendings]
        some = [each for each in some if each["category"] in NEEDS_CONSENT]
        if not some or rng.random() < 0.2:
            return rng.choice(self._people), rng.choice(CHANNELS), rng.choice(NEEDS_CONSENT)
        chosen = rng.choice(some)
        contact_id = chosen["to"][0]["contactId"]
        (person,) = [each for each in self._people if str(each.pk) == contact_id]
        return person, rng.choice(chosen["channels"]), chosen["category"]

    def _opt_out(self) -> None:
        person, channel, category = self._target()
        decision = ConsentDecision(
            str(person.pk), channel, category, ledger.OPTED_OUT, "API", occurred_at=None
        )
        ledger.record(ORGANIZATION, [decision])
        self._object(person, channel, category)

    def _opt_in(self) -> None:
        """Agree again to what somebody has objected to, or to anything."""
        person, channel, category = self._target()
        own = [each for each in self.objections if each.category]
        if own:
            chosen = self._rng.choice(own)
            (person,) = [each for each in self._people if str(each.pk) == chosen.contact_id]
            channel, category = chosen.channel, chosen.category or category
        self._agree(person, channel, category)
        decision = ConsentDecision(
            str(person.pk), channel, category, ledger.OPTED_IN, "API", occurred_at=None
        )
        ledger.record(ORGANIZATION, [decision])

    def _agree(self, person: Contact, channel: str, category: str | None) -> None:
        """Note that from now on a person may be sent what they had objected to; None: all of a
        channel, by START.
        """
        now = self._turns.clock.now
        self.objections = [
            replace(each, until=min(each.until, now))
            if (each.contact_id, each.channel) == (str(person.pk), channel)
            and category in (None, each.category)
            else each
            for each in self.objections
        ]
        self._turns.note(f"agrees to {category or 'all'} on {channel}")

    def _suppress(self) -> None:
        person = self._rng.choice(self._people)
        stop = NewSuppression(ORGANIZATION, "SMS", person.mobile, "STOP", "INBOUND")
        suppressions.add(ORGANIZATION, [stop])
        self._object(person, "SMS", None)

    def _write_sms(self) -> None:
        """Write an SMS, or two; the provider reports each once or twice, and not at once."""
        rng, sender = self._rng, self._rng.choice(self._people).mobile
        for _ in range(rng.choice((1, 1, 2))):
            text, number = rng.choice(TEXTS), len(self.keywords)
            if text in STOPS + STARTS:
                self.keywords.add((sender, text, number))
            for _ in range(rng.choice((1, 2))):
                due = self._turns.clock.after(rng.choice((0.0, 0.01, 0.5, 3.0)))
                self._world.reports.append(Report(due, "c", "", text, number, sender=sender))

    def after_inbound(self, received: Sequence[ReceivedSms]) -> None:
        """Remember what inbound SMS ask for: a beginning at once, an end once the open transaction
        is committed. The last keyword of a number decides.
        """
        words = [each for each in received if each.sms.text in STOPS + STARTS]
        last = {e.sms.sender: e for e in sorted(words, key=lambda each: each.received_at)}
        ended = {key: e.received_at for key, e in last.items() if e.sms.text in STOPS}
        for person in self._people:
            found = last.get(person.mobile)
            if found is None or person.mobile in ended:
                continue
            # A START that is older than a STOP must not undo it, whichever is applied first.
            stopped_at = self._stopped_at.get(person.mobile)
            if stopped_at is None or stopped_at <= found.received_at:
                self._agree(person, "SMS", None)
        thread = current()
        if thread is not None and ended:
            thread.on_commit.append(lambda: self._stopped(ended))

    def _stopped(self, ended: Mapping[str, datetime]) -> None:
        for person in self._people:
            if person.mobile in ended:
                self._stopped_at[person.mobile] = ended[person.mobile]
                self._object(person, "SMS", None)

    def _use_preference_page(self) -> None:
        """Follow the link of a message: unsubscribe from its category, or from everything."""
        message_id = self._message_id()
        row = Delivery.objects.filter(pk=message_id).first() if message_id else None
        if row is None or row.category not in NEEDS_CONSENT:
            return
        link = PreferenceLink(ORGANIZATION, row.contact_id, row.channel, row.category, str(row.pk))
        recipient = preferences.find_recipient(link)
        (person,) = [each for each in self._people if str(each.pk) == row.contact_id]
        if self._rng.random() < 0.5:
            preference_changes.unsubscribe(recipient, ConsentEntry.Source.PREFERENCE_PAGE, {})
            self._object(person, row.channel, row.category)
        else:
            preference_changes.stop(recipient, {})
            for channel in CHANNELS:
                for category in NEEDS_CONSENT:
                    self._object(person, channel, category)

    def _object(self, person: Contact, channel: str, category: str | None) -> None:
        now = self._turns.clock.now
        self.objections.append(Objection(str(person.pk), channel, category, now))
        self._turns.note(f"objected to {category or 'all'} on {channel}")

    # --- administrators -------------------------------------------------------------------------

    def _pause(self) -> None:
        channel = self._rng.choice(("", "EMAIL", "SMS"))
        Pause.objects.create(organization_id=ORGANIZATION, channel=channel, reason="simulated")
        self._turns.note(f"paused {channel or 'all'}")
        self._turns.sleep(self._rng.choice((0.5, 5.0, 20.0)))
        resume()

    def review(self) -> None:
        """Decide deliveries in manual review, from a list that is old: others are on it, too."""
        rows = Delivery.objects.filter(status__in=_UNDECIDED).order_by("pk")
        chosen: list[UUID] = list(rows.values_list("pk", flat=True))
        decision = self._rng.choice(list(Decision))
        changed = self._decide(chosen, decision)
        self._turns.note(f"{decision} for {len(changed)} of {len(chosen)}")
        if changed and self._world.at_rest:  # a second click
            self.has_reviewed = True
            again = self._decide(sorted(changed), decision)
            self.repeated_reviews += [str(each) for each in sorted(again)]

    def _decide(self, chosen: Sequence[UUID], decision: Decision) -> set[UUID]:
        return manual_review.decide(
            ORGANIZATION, chosen, decision, reason="simulated", actor=COMMAND_LINE
        )


def resume() -> None:
    """End all pauses."""
    Pause.objects.all().delete()
    pausing.resume(ORGANIZATION)
