"""The DNS records of a sender domain: which to publish, and what those that are there say.

SPF: RFC 7208; DKIM: RFC 6376; DMARC: RFC 7489. Nothing here asks a resolver.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.utils.translation import gettext

from messaging.domain.sentences import Sentence, sentence

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
    text: Sentence

    def as_json(self) -> dict[str, Any]:
        """Return the finding as it is stored: its text, and what translates it."""
        text = {"text": self.text, "template": self.text.template, "values": self.text.values}
        return {"record": self.record, "state": self.state, **text}

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> "RecordFinding":
        """Return a stored finding; one of an earlier release has its text alone."""
        template = stored.get("template") or stored["text"].replace("%", "%%")
        text = sentence(template, **stored.get("values", {}))
        return cls(stored["record"], RecordState(stored["state"]), text)


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
            gettext(
                "If there is an SPF record already, add the mechanism to it: there may be only one."
            ),
        ),
        Record(
            "DKIM",
            f"{selector or '…'}._domainkey.{domain}",
            "",
            gettext(
                "Its value is the key that your provider shows, as TXT (v=DKIM1; p=…) or as a "
                "CNAME."
            ),
        ),
        Record(
            "DMARC",
            f"_dmarc.{domain}",
            "v=DMARC1; p=none",
            gettext("Later p=quarantine or p=reject."),
        ),
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


_Result = tuple[RecordState, Sentence]
_SILENT: _Result = (
    RecordState.NO_ANSWER,
    sentence("No resolver answered. rme asks again in a day."),
)


def _spf(texts: Sequence[str] | None, mechanism: str) -> _Result:
    if texts is None:
        return _SILENT
    records = [each for each in texts if each.lower().split(" ")[0] == "v=spf1"]
    if not records:
        return RecordState.MISSING, sentence("There is no SPF record.")
    if len(records) > 1:
        return RecordState.WRONG, sentence(
            "There are %(count)s SPF records; there may be only one.", count=len(records)
        )
    terms = records[0].lower().split()
    if "+all" in terms or "all" in terms:
        return RecordState.WRONG, sentence("The SPF record lets anybody send: it has +all.")
    if not mechanism:
        return RecordState.UNSET, sentence(
            "There is an SPF record. Enter the mechanism of your provider."
        )
    lacking = [each for each in mechanism.lower().split() if each not in terms]
    if lacking:
        return RecordState.WRONG, sentence(
            "The SPF record lacks %(terms)s.", terms=" ".join(lacking)
        )
    return RecordState.RIGHT, sentence("The SPF record has %(terms)s.", terms=mechanism)


def _dkim(texts: Sequence[str] | None, selector: str) -> _Result:
    if not selector:
        return RecordState.UNSET, sentence("Enter the selector that your provider names.")
    if texts is None:
        return _SILENT
    keys = [tags["p"] for each in texts if "p" in (tags := _tags(each))]
    if not keys:
        return RecordState.MISSING, sentence(
            "There is no DKIM key at the selector %(selector)s.", selector=selector
        )
    if len(keys) > 1:
        return RecordState.WRONG, sentence(
            "There are %(count)s DKIM keys at the selector %(selector)s.",
            count=len(keys),
            selector=selector,
        )
    if not keys[0]:
        return RecordState.WRONG, sentence(
            "The DKIM key of the selector %(selector)s was revoked.", selector=selector
        )
    return RecordState.RIGHT, sentence(
        "There is a DKIM key at the selector %(selector)s.", selector=selector
    )


def _dmarc(answers: Sequence[Sequence[str] | None]) -> _Result:
    for texts in answers:
        if texts is None:
            return _SILENT
        records = [tags for each in texts if (tags := _tags(each)).get("v") == "DMARC1"]
        if len(records) > 1:
            return RecordState.WRONG, sentence(
                "There are %(count)s DMARC records; there may be one.", count=len(records)
            )
        if records and records[0].get("p") not in ("none", "quarantine", "reject"):
            return RecordState.WRONG, sentence("The DMARC record has no policy (p=).")
        if records:
            return RecordState.RIGHT, sentence(
                "The DMARC record has the policy %(policy)s.", policy=records[0]["p"]
            )
    return RecordState.MISSING, sentence("There is no DMARC record.")


def _dmarc_names(domain: str) -> list[str]:
    """Return where the DMARC record may be: at the domain, or at one above it."""
    labels = domain.split(".")
    above = range(max(1, min(_PARENTS, len(labels) - 1)))
    return [f"_dmarc.{'.'.join(labels[step:])}" for step in above]


def _tags(text: str) -> dict[str, str]:
    """Return the tags of a record like `v=DKIM1; p=…`."""
    pairs = (part.partition("=") for part in text.split(";"))
    return {name.strip().lower(): value.strip() for name, _, value in pairs if name.strip()}
