"""What stops a message: suppressions, consent, frequency caps; and pauses, which only delay it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from messaging.domain.channels import ALL
from messaging.domain.policy import CategoryRules

OPTED_IN, OPTED_OUT = "OPTED_IN", "OPTED_OUT"
"""The two decisions of a consent entry."""

Spellings = Callable[[str], Iterable[str]]
"""All ways in which the lists may have an address: a number as each network writes it."""


def _as_written(address: str) -> Iterable[str]:
    return (address,)


class Candidate(NamedTuple):
    """One contact on one channel at one address (None for push, which has no address)."""

    organization_id: str
    contact_id: str
    channel: str
    address: str | None
    category: CategoryRules
    delivery_id: str | None = None
    """Set right before sending: the delivery itself does not count against its own cap."""
    test: bool = False
    """Whether a TEST application sends it: then the TEST layer counts above the live one."""


# --- pauses ---------------------------------------------------------------------------------------


class PauseScope(NamedTuple):
    """What one pause covers. An empty part covers everything."""

    channel: str
    category: str
    template: str


@dataclass(frozen=True, slots=True)
class Pauses:
    """The pauses of one organization that are in force."""

    scopes: Sequence[PauseScope]

    def cover(self, channel: str, category: str, template: str | None) -> bool:
        """Return whether any pause covers a delivery: every part it names is the delivery's."""
        return any(
            scope.channel in ("", channel)
            and scope.category in ("", category)
            and scope.template in ("", template)
            for scope in self.scopes
        )


# --- suppressions ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ActiveSuppressions:
    """Entry ids of one organization, by channel (or ALL) and address or contact."""

    addresses: dict[tuple[str, str], str]
    contacts: dict[tuple[str, str], str]
    spell: Spellings = field(default=_as_written, compare=False)

    def above(self, live: "ActiveSuppressions") -> "ActiveSuppressions":
        """Return both layers as one."""
        return ActiveSuppressions(
            {**live.addresses, **self.addresses},
            {**live.contacts, **self.contacts},
            live.spell,
        )

    def entry(self, channel: str, address: str | None, contact_id: str) -> str | None:
        """Return the id of the entry that suppresses a contact or its address, or None."""
        if not self.contacts and not self.addresses:  # most have no entry at all
            return None
        by_contact = self.contacts.get((channel, contact_id)) or self.contacts.get(
            (ALL, contact_id)
        )
        if by_contact or not address:
            return by_contact
        return next(
            (
                entry
                for spelling in self.spell(address)
                for listed_channel in (channel, ALL)
                if (entry := self.addresses.get((listed_channel, spelling)))
            ),
            None,
        )


# --- consent --------------------------------------------------------------------------------------


class Level(NamedTuple):
    """What a consent entry is about. Channel and category may be ALL."""

    contact_id: str
    channel: str
    category: str


class AddressLevel(NamedTuple):
    """The address, channel and category of an objection. The category may be ALL."""

    address: str
    channel: str
    category: str


class ConsentState(NamedTuple):
    """The newest decision on one level."""

    status: str
    at: float
    """Seconds since 1970."""
    entry: str
    """The id of the ledger entry."""


class ConsentPermission(NamedTuple):
    """Whether a contact may be written to, and the entry that decides; None: the regime does."""

    allowed: bool
    entry: str | None = None


_BY_REGIME = {False: ConsentPermission(True), True: ConsentPermission(False)}
"""The permission without any entry, by whether contacts have to opt in."""


@dataclass(frozen=True, slots=True)
class CurrentConsent:
    """The newest decision of each level of one organization's contacts."""

    states: dict[Level, ConsentState]
    objections: dict[AddressLevel, ConsentState] = field(default_factory=dict)
    """The newest objection by each address."""
    spell: Spellings = field(default=_as_written, compare=False)

    def above(self, live: "CurrentConsent") -> "CurrentConsent":
        """Merge both layers: on each level the newest decision counts, and OPTED_OUT in a tie."""
        states = dict(live.states)
        for level, state in self.states.items():
            live_state = states.get(level)
            if live_state is None or _order(state) > _order(live_state):
                states[level] = state
        return CurrentConsent(states, live.objections, live.spell)

    def permission(
        self,
        contact_id: str,
        channel: str,
        category: str,
        *,
        opt_in: bool,
        address: str | None = None,
    ) -> ConsentPermission:
        """Return whether a contact may be written to at an address, and the entry that decides.

        The most specific level decides (fewest wildcards), and there the newest entry; a tie goes
        against sending. But an OPTED_OUT newer than the deciding OPTED_IN blocks on any level.
        Without an entry, `opt_in` categories are blocked and others allowed.
        """
        # Most contacts have no entry, and this runs for every delivery.
        if not self.states and not self.objections:
            return _BY_REGIME[opt_in]
        levels = [
            [(channel, category)],
            [(channel, ALL), (ALL, category)],
            [(ALL, ALL)],
        ]
        by_level = [
            [state for pair in level for state in self._at(contact_id, address, *pair)]
            for level in levels
        ]
        deciding = next((level for level in by_level if level), None)
        if deciding is None:
            return _BY_REGIME[opt_in]
        state = max(deciding, key=_order)
        objections = (each for level in by_level for each in level if each.status == OPTED_OUT)
        objection = next((each for each in objections if each.at > state.at), None)
        if state.status == OPTED_IN and objection:
            return ConsentPermission(False, objection.entry)
        return ConsentPermission(state.status == OPTED_IN, state.entry)

    def _at(
        self, contact_id: str, address: str | None, channel: str, category: str
    ) -> Iterator[ConsentState]:
        """Yield the decisions on one level, of the contact and of the address."""
        if state := self.states.get(Level(contact_id, channel, category)):
            yield state
        if address and self.objections:
            for spelling in self.spell(address):
                if state := self.objections.get(AddressLevel(spelling, channel, category)):
                    yield state

    def opted_out(
        self, contact_id: str, channel: str, category: str, *, address: str | None = None
    ) -> bool:
        """Return whether the newest decision on exactly this level is OPTED_OUT.

        With an address, return False unless it has such an objection, too.
        """
        state = self.states.get(Level(contact_id, channel, category))
        if state is None or state.status != OPTED_OUT:
            return False
        return not address or AddressLevel(address, channel, category) in self.objections

    def allows(
        self,
        contact_id: str,
        channel: str,
        category: str,
        *,
        opt_in: bool,
        address: str | None = None,
    ) -> bool:
        """Return whether a contact may be written to at an address."""
        return self.permission(
            contact_id, channel, category, opt_in=opt_in, address=address
        ).allowed


def _order(state: ConsentState) -> tuple[float, bool]:
    return state.at, state.status == OPTED_OUT


# --- facts ----------------------------------------------------------------------------------------


class LayerFacts(NamedTuple):
    """The suppressions and the consent that count for an organization's sends."""

    suppressions: ActiveSuppressions
    consent: CurrentConsent


NO_FACTS = LayerFacts(ActiveSuppressions({}, {}), CurrentConsent({}))
"""What counts for most organizations: no entry."""


class GateFacts(NamedTuple):
    """What counts for live sends and for those of TEST applications, by organization."""

    live: Mapping[str, LayerFacts]
    in_test: Mapping[str, LayerFacts]

    def of(self, candidate: Candidate) -> LayerFacts:
        """Return what counts for a candidate."""
        layer = self.in_test if candidate.test else self.live
        return layer.get(candidate.organization_id, NO_FACTS)


# --- the verdict ----------------------------------------------------------------------------------


class GateRefusal(StrEnum):
    """Why a gate stops a message."""

    SUPPRESSED = "SUPPRESSED"
    NO_CONSENT = "NO_CONSENT"
    FREQUENCY_CAPPED = "FREQUENCY_CAPPED"


class GateVerdict(NamedTuple):
    """Whether a message may be sent, and the suppression or consent entry that decided."""

    refusal: GateRefusal | None = None
    entry: str | None = None


MAY_GO = GateVerdict()
"""The usual verdict: no entry stops the message, and none allows it."""


def decide(
    suppression: str | None, permission: ConsentPermission, is_capped: Callable[[], bool]
) -> GateVerdict:
    """Return the verdict of the gates, in their order.

    `is_capped` counts the message, so it is called only if the other gates let it pass.
    """
    if suppression:
        return GateVerdict(GateRefusal.SUPPRESSED, suppression)
    if not permission.allowed:
        return GateVerdict(GateRefusal.NO_CONSENT, permission.entry)
    if is_capped():
        return GateVerdict(GateRefusal.FREQUENCY_CAPPED)
    return GateVerdict(None, permission.entry) if permission.entry else MAY_GO
