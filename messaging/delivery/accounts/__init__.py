"""Provider accounts: which may take a send, in which order, and whether they take it now.

`routing` finds and orders the accounts; `admission` decides what may go now, by one typed answer
(`Availability`) of the circuit breakers, the adaptive limits and the rates. The send loop
reports the results of its sends to `circuit_history`, which stores what changes in `circuits`, and
to `concurrency`.
"""

from messaging.delivery.accounts.admission import (
    admit,
    process_rooms,
    rooms,
    shared_availability,
)
from messaging.delivery.accounts.circuit_history import latest as latest_changes
from messaging.delivery.accounts.circuit_history import purge as purge_history
from messaging.delivery.accounts.rates import add as add_to_backlogs
from messaging.delivery.accounts.rates import backlog
from messaging.delivery.accounts.routing import (
    SIMULATORS,
    Router,
    RouteStep,
    configured,
    expected,
    explain,
    serving,
)
from messaging.domain.accounts.admission import Availability, CircuitState, UnavailableReason
from messaging.domain.accounts.routing import RouteAnswer

__all__ = [
    "SIMULATORS",
    "Availability",
    "CircuitState",
    "RouteAnswer",
    "RouteStep",
    "Router",
    "UnavailableReason",
    "add_to_backlogs",
    "admit",
    "backlog",
    "configured",
    "expected",
    "explain",
    "latest_changes",
    "process_rooms",
    "purge_history",
    "rooms",
    "serving",
    "shared_availability",
]
