"""Which cell a key belongs to: asked of all cells at once, and remembered.

What is remembered is the home of a key, and the cell where a home is now. A home is an organization
in the cell where it was found first: two cells may have one of the same name. A 421 corrects the
cell for all keys of the home. What is older than `known_seconds` is looked up anew, and counts
meanwhile until it is twice as old. Of a person nothing is remembered: whether a
look-up was answered from memory would show whether there is an account.
"""

import asyncio
import hashlib
import hmac
import time
from collections import OrderedDict
from typing import NamedTuple, TypeVar

from rme.cells.router import metrics
from rme.cells.router.cells import CellAway, Cells, CellState, OwnerAnswer
from rme.cells.router.environment import RouterBounds
from rme.cells.router.routing import Key, KeyKind

K = TypeVar("K")
V = TypeVar("V")


class Home(NamedTuple):
    """An organization, and the cell where it was found."""

    organization: str
    cell: str


class Incomplete(Exception):
    """No cell that answers knows the key, and not all cells answer."""


class TooManyLookUps(Exception):
    """As many look-ups as there may be are under way."""


class CellFinder:
    """Finds the cells of keys."""

    def __init__(self, cells: Cells, bounds: RouterBounds) -> None:
        self.cells, self.bounds = cells, bounds
        self._homes: OrderedDict[Key, tuple[float, Home]] = OrderedDict()
        self._cell_of: OrderedDict[Home, tuple[float, str]] = OrderedDict()
        self._unknown: OrderedDict[Key, float] = OrderedDict()
        self._incomplete: OrderedDict[Key, float] = OrderedDict()
        self._under_way: dict[Key, asyncio.Task[CellState | None]] = {}
        self._asking = 0

    async def find(self, key: Key) -> CellState | None:
        """Return the cell of a key; None if no cell knows it. Raise Incomplete, TooManyLookUps."""
        if key.kind is KeyKind.PERSON:
            return await self._person(key)
        now = time.monotonic()
        if cell := self._remembered(key, now):
            return cell
        if self._unknown.get(key, 0.0) > now:
            return None
        stale = self._remembered(key, now - self.bounds.known_seconds)
        if self._incomplete.get(key, 0.0) > now:
            if stale:
                return stale
            raise Incomplete
        if (task := self._under_way.get(key)) is None:
            task = asyncio.create_task(self._look_up(key))
            self._under_way[key] = task
            task.add_done_callback(lambda ended: self._end(key, ended))
        return stale or await asyncio.shield(task)

    def _end(self, key: Key, task: asyncio.Task[CellState | None]) -> None:
        """Forget a look-up that has ended.

        If a stale entry was used, its error is awaited nowhere.
        """
        self._under_way.pop(key, None)
        if not task.cancelled():
            task.exception()

    def moved(self, key: Key | None, to: str) -> CellState | None:
        """Note that the organization of a key is in another cell; return the cell, if it is one."""
        cell = self.cells.by_name.get(to)
        if cell and key and (entry := self._homes.get(key)):
            self._put(self._cell_of, entry[1], (self._later(), cell.name))
        return cell

    def chosen(self, text: str) -> CellState:
        """Return a cell for a text, always the same; unpredictable without the secret."""
        number = int.from_bytes(hmac.digest(self.cells.secret.encode(), text.encode(), "sha256"))
        names = list(self.cells.by_name)
        return self.cells.by_name[names[number % len(names)]]

    def _remembered(self, key: Key, now: float) -> CellState | None:
        if (entry := self._homes.get(key)) is None or entry[0] <= now:
            return None
        self._homes.move_to_end(key)
        answer = self._cell_of.get(entry[1])
        return self.cells.by_name[answer[1]] if answer and answer[0] > now else None

    async def _look_up(self, key: Key) -> CellState | None:
        answers, complete = await self._ask(key, enough=1)
        for answered_by, answer in answers:
            if answer.cell == answered_by.name:
                return self._remember(key, answer)
        # The cell from which it moved still points to where it is.
        for _, answer in answers:
            if answer.cell in self.cells.by_name:
                return self._remember(key, answer)
        if not complete:
            self._put(self._incomplete, key, time.monotonic() + self.bounds.incomplete_seconds)
            raise Incomplete
        self._homes.pop(key, None)
        self._put(self._unknown, key, time.monotonic() + self.bounds.unknown_seconds)
        return None

    async def _person(self, key: Key) -> CellState:
        """Return the cell of a person; one that the name stands for if no cell has the person.

        All cells are awaited, so neither the time nor the cell shows whether there is an account.
        """
        answers, _ = await self._ask(key, enough=len(self.cells.by_name))
        names = {answer.cell for _, answer in answers} & self.cells.by_name.keys()
        stands_for = self.chosen(f"person {hashlib.sha256(key.value.lower().encode()).hexdigest()}")
        if not names or stands_for.name in names:
            return stands_for
        return self.cells.by_name[min(names)]

    async def _ask(
        self, key: Key, *, enough: int
    ) -> tuple[list[tuple[CellState, OwnerAnswer]], bool]:
        """Ask all cells; return the answers of those that know the key, and whether all answered.

        The others are not awaited once `enough` cells have the key as their own. Raise
        TooManyLookUps: a flood of log-ins, too, asks the cells no more than so much at a time.
        """
        if self._asking >= self.bounds.look_ups:
            raise TooManyLookUps
        metrics.LOOK_UPS.labels(key.kind.value).inc()
        question = {"kind": key.kind.value, "value": key.value}

        async def ask(cell: CellState) -> tuple[CellState, OwnerAnswer | None, bool]:
            try:
                return cell, await self.cells.ask_owner(cell, question), True
            except CellAway:
                return cell, None, False

        tasks = [asyncio.create_task(ask(cell)) for cell in self.cells]
        answers: list[tuple[CellState, OwnerAnswer]] = []
        complete, owner_count = True, 0
        self._asking += 1
        try:
            for finished in asyncio.as_completed(tasks):
                cell, answer, has_answered = await finished
                complete = complete and has_answered
                if answer:
                    answers.append((cell, answer))
                    owner_count += answer.cell == cell.name
                if owner_count >= enough:
                    break
        finally:
            self._asking -= 1
            for task in tasks:
                task.cancel()
        return answers, complete

    def _remember(self, key: Key, answer: OwnerAnswer) -> CellState:
        home = Home(answer.organization, answer.cell)
        self._put(self._homes, key, (self._later(), home))
        self._put(self._cell_of, home, (self._later(), answer.cell))
        return self.cells.by_name[answer.cell]

    def _later(self) -> float:
        return time.monotonic() + self.bounds.known_seconds

    def _put(self, table: OrderedDict[K, V], key: K, value: V) -> None:
        table[key] = value
        table.move_to_end(key)
        while len(table) > self.bounds.known:
            table.popitem(last=False)
