"""The DNS records of a sender domain: which to publish, and what those that are there say.

SPF: RFC 7208; DKIM: RFC 6376; DMARC: RFC 7489. Nothing here asks a resolver.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

Texts = Mapping[str, Sequence[str] | None]
"""The TXT records by name; None where no resolver answered."""
_PARENTS = 3
"""The most names above a domain at which its DMARC record may stand."""


class RecordState(StrEnum):
    """What a check found of a record."""

    RIGHT = "RIGHT"
    WRONG = "WRONG"
    MISSING = "MISSING"
    UNSET = "UNSET"
    """It is not known what to look for."""
    NO_ANSWER = "NO_ANSWER"


@dataclass(frozen=True, slots=True)
class RecordFinding:
    """What a check found of a record, in words."""

    record: str
    state: RecordState
    text: str

    def as_json(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Record:
    """A TXT record to publish."""

    kind: str
    name: str
    value: str
    note: str = ""


def to_publish(domain: str, spf: str, selector: str) -> list[Record]:
    """Return the records that a domain needs. Of DKIM the provider shows the value."""
    return [
        Record(
            "SPF",
            domain,
            f"v=spf1 {spf or 'include:…'} ~all",
            "If there is an SPF record already, add the mechanism to it: there may be only one.",
        ),
        Record(
            "DKIM",
            f"{selector or '…'}._domainkey.{domain}",
            "",
            "Its value is the key that your provider shows, as TXT (v=DKIM1; p=…) or as a CNAME.",
        ),
        Record("DMARC", f"_dmarc.{domain}", "v=DMARC1; p=none", "Later p=quarantine or p=reject."),
    ]


def names(domain: str, selector: str) -> list[str]:
    """Return the names to look up for a domain."""
    dkim = [f"{selector}._domainkey.{domain}"] if selector else []
    return [domain, *dkim, *_dmarc_names(domain)]


def findings(domain: str, spf: str, selector: str, texts: Texts) -> list[RecordFinding]:
    """Return what the records of a domain say."""
    return [
        RecordFinding("SPF", *_spf(texts.get(domain), spf)),
        RecordFinding("DKIM", *_dkim(texts.get(f"{selector}._domainkey.{domain}"), selector)),
        RecordFinding("DMARC", *_dmarc([texts.get(name) for name in _dmarc_names(domain)])),
    ]


_Result = tuple[RecordState, str]
_SILENT: _Result = (RecordState.NO_ANSWER, "No resolver answered. It is asked again in a day.")


def _spf(texts: Sequence[str] | None, mechanism: str) -> _Result:
    if texts is None:
        return _SILENT
    records = [each for each in texts if each.lower().split(" ")[0] == "v=spf1"]
    if not records:
        return RecordState.MISSING, "There is no SPF record."
    if len(records) > 1:
        return RecordState.WRONG, f"There are {len(records)} SPF records; there may be only one."
    terms = records[0].lower().split()
    if "+all" in terms or "all" in terms:
        return RecordState.WRONG, "The SPF record lets anybody send: it has +all."
    if not mechanism:
        return RecordState.UNSET, "There is an SPF record. Enter the mechanism of your provider."
    lacking = [each for each in mechanism.lower().split() if each not in terms]
    if lacking:
        return RecordState.WRONG, f"The SPF record lacks {' '.join(lacking)}."
    return RecordState.RIGHT, f"The SPF record has {mechanism}."


def _dkim(texts: Sequence[str] | None, selector: str) -> _Result:
    if not selector:
        return RecordState.UNSET, "Enter the selector that your provider names."
    if texts is None:
        return _SILENT
    keys = [tags["p"] for each in texts if "p" in (tags := _tags(each))]
    if not keys:
        return RecordState.MISSING, f"There is no DKIM key at the selector {selector}."
    if len(keys) > 1:
        return RecordState.WRONG, f"There are {len(keys)} DKIM keys at the selector {selector}."
    if not keys[0]:
        return RecordState.WRONG, f"The DKIM key of the selector {selector} was revoked."
    return RecordState.RIGHT, f"There is a DKIM key at the selector {selector}."


def _dmarc(answers: Sequence[Sequence[str] | None]) -> _Result:
    for texts in answers:
        if texts is None:
            return _SILENT
        records = [tags for each in texts if (tags := _tags(each)).get("v") == "DMARC1"]
        if len(records) > 1:
            return RecordState.WRONG, f"There are {len(records)} DMARC records; there may be one."
        if records and records[0].get("p") not in ("none", "quarantine", "reject"):
            return RecordState.WRONG, "The DMARC record has no policy (p=)."
        if records:
            return RecordState.RIGHT, f"The DMARC record has the policy {records[0]['p']}."
    return RecordState.MISSING, "There is no DMARC record."


def _dmarc_names(domain: str) -> list[str]:
    """Return where the DMARC record may be: at the domain, or at one above it."""
    labels = domain.split(".")
    above = range(max(1, min(_PARENTS, len(labels) - 1)))
    return [f"_dmarc.{'.'.join(labels[step:])}" for step in above]


def _tags(text: str) -> dict[str, str]:
    """Return the tags of a record like `v=DKIM1; p=…`."""
    pairs = (part.partition("=") for part in text.split(";"))
    return {name.strip().lower(): value.strip() for name, _, value in pairs if name.strip()}
