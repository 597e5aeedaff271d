"""Small in-process caches for what is read on every call and changes rarely."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any, ClassVar, Generic, TypeVar
from weakref import WeakSet

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class TtlCache(Generic[K, V]):
    """A cache with a time to live; the least recently used entry is dropped first. Thread-safe.

    A loader that finds nothing returns None, which is not stored: a new row is found at once, and
    a changed one after at most `seconds`.
    """

    _all: ClassVar["WeakSet[TtlCache[Any, Any]]"] = WeakSet()

    def __init__(self, seconds: float, size: int = 1024) -> None:
        self.seconds = seconds
        self.size = size
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._lock = threading.Lock()
        TtlCache._all.add(self)

    def get(self, key: K, load: Callable[[], V | None]) -> V | None:
        """Return the cached value, or load and store it."""
        now = time.monotonic()
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry[0] > now:
                self._entries.move_to_end(key)
                return entry[1]
        value = load()
        if value is not None:
            self.put(key, value)
        return value

    def get_many(self, keys: Collection[K], load: Callable[[list[K]], Mapping[K, V]]) -> dict[K, V]:
        """Return the values by key, and load all missing ones by one call."""
        now = time.monotonic()
        with self._lock:
            values = {
                key: entry[1]
                for key in keys
                if (entry := self._entries.get(key)) is not None and entry[0] > now
            }
        absent_keys = [key for key in keys if key not in values]
        if absent_keys:
            loaded = load(absent_keys)
            for key, value in loaded.items():
                self.put(key, value)
            values.update(loaded)
        return values

    def last(self, key: K) -> V | None:
        """Return the value that was stored last, even if its time has passed."""
        with self._lock:
            entry = self._entries.get(key)
            return entry[1] if entry else None

    def put(self, key: K, value: V) -> None:
        """Store a value for `seconds`."""
        with self._lock:
            self._entries[key] = (time.monotonic() + self.seconds, value)
            self._entries.move_to_end(key)
            while len(self._entries) > self.size:
                self._entries.popitem(last=False)

    def forget(self, key: K) -> None:
        """Remove one value."""
        with self._lock:
            self._entries.pop(key, None)

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._entries.clear()

    @classmethod
    def clear_all(cls) -> None:
        """Remove the values of all caches of this process, for tests and benchmarks."""
        for cache in list(cls._all):
            cache.clear()
