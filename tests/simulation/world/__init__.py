"""A seeded world around the real accept, delivery, feedback and sweeper code, on a real PostgreSQL.

One seed gives one history: a virtual clock, logical processes that take turns in an order drawn
from the seed, a provider that accepts, refuses, delays, loses and repeats, and faults around each
transaction. After each history the invariants are checked. See docs/simulation.md.
"""
