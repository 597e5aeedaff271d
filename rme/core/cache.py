"""Small in-process caches for what is read on every call and changes rarely."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import ClassVar, Generic, TypeVar
from weakref import WeakSet

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class TtlCache(Generic[K, V]):
    """Keep values for some seconds, the least recently used dropped first. Thread-safe.

    A loader that finds nothing returns None, and None is not kept: what was just made is found at
    once, while what was changed is seen after at most `seconds`.
    """

    _all: ClassVar["WeakSet[TtlCache[object, object]]"] = WeakSet()

    def __init__(self, seconds: float, size: int = 1024) -> None:
        self.seconds = seconds
        self.size = size
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._lock = threading.Lock()
        TtlCache._all.add(self)  # type: ignore[arg-type]

    def get(self, key: K, load: Callable[[], V | None]) -> V | None:
        """Give the kept value, or load it."""
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
        """Give what is kept, and load all that is missing by one call."""
        now = time.monotonic()
        with self._lock:
            found = {
                key: entry[1]
                for key in keys
                if (entry := self._entries.get(key)) is not None and entry[0] > now
            }
        missing = [key for key in keys if key not in found]
        if missing:
            loaded = load(missing)
            for key, value in loaded.items():
                self.put(key, value)
            found.update(loaded)
        return found

    def put(self, key: K, value: V) -> None:
        """Keep a value from now on."""
        with self._lock:
            self._entries[key] = (time.monotonic() + self.seconds, value)
            self._entries.move_to_end(key)
            while len(self._entries) > self.size:
                self._entries.popitem(last=False)

    def forget(self, key: K) -> None:
        """Drop one value."""
        with self._lock:
            self._entries.pop(key, None)

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._entries.clear()

    @classmethod
    def clear_all(cls) -> None:
        """Drop what every cache of this process holds (tests start from nothing)."""
        for cache in list(cls._all):
            cache.clear()
