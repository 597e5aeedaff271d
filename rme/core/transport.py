"""The ONE way out of the house (interface being built)."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Request: ...


@dataclass(frozen=True, slots=True)
class Reply: ...


@dataclass(frozen=True, slots=True)
class Failure: ...


class Transport:
    def perform(self, requests: Sequence[Request]) -> list[Reply | Failure]: ...
def shared(): return Transport()
