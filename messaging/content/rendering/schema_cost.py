"""The cost of a schema of variables, known before any value is checked.

Two things multiply: schemas that reach one value in several ways (`anyOf` of references to `anyOf`
of references), and repetitions in a pattern, whose steps run for each character of a text. This
module counts both, and activating a version limits them. Versions that were active before these
limits are still checked, but not quickly.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

EVALUATIONS_LIMIT = 1_000
"""How often a schema may look at a value and its contents, along one path."""
PATTERN_LIMIT = 10_000
"""How many steps a pattern may have, with its repetitions written out."""

_DEPTH = 12
"""How deeply values may be nested."""
_IN_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
_IN_PLACE = ("not", "if", "then", "else")
_CHILDREN = ("additionalProperties", "items", "contains", "propertyNames")

_COUNTED = re.compile(r"\{\s*+([0-9]*+)\s*+(,?)\s*+([0-9]*+)\s*+\}")
_CLASS_NAME = re.compile(
    r"\\[pP](?:\{[^}]*\}|.)|\\[xuU](?:\{[^}]*\}|[0-9a-fA-F]{2})|\\.", re.DOTALL
)
_GROUP_START = re.compile(r"\((?:\?(?:P?<[^>]*>|[a-zA-Z-]*:?))?")
_VERBOSE = re.compile(r"\(\?[a-zA-Z]*x")
_CLASS_COSTS = {**dict.fromkeys("wWpP", 100), **dict.fromkeys("dD", 20), **dict.fromkeys("sS", 4)}
"""Steps of Unicode classes: these become automata of bytes, which take time to build."""
_WORK_LIMIT = 20_000
"""How many subschemas the count may look at; a schema that needs more is above any limit."""

Schema = Mapping[str, Any]
Resolve = Callable[[str], object]


def pattern_cost(pattern: str) -> int:
    """Return the approximate steps of a pattern, with its repetitions written out.

    A pattern with the flag x, which ignores spaces, is above the limit.
    """
    if _VERBOSE.search(pattern):
        return PATTERN_LIMIT + 1
    groups = [[0]]  # the steps of the parts of each open group
    position = 0
    while position < len(pattern):
        parts = groups[-1]
        if start := _GROUP_START.match(pattern, position):
            groups.append([0])
            position = start.end()
        elif repetition := _COUNTED.match(pattern, position):
            parts[-1] *= max(1, _highest(repetition))
            position = repetition.end()
        elif pattern[position] == ")" and len(groups) > 1:
            inner = sum(groups.pop())
            groups[-1].append(inner + 1)
            position += 1
        else:
            end = _atom_end(pattern, position)
            parts.append(_atom_cost(pattern[position:end]))
            position = end
    return sum(map(sum, groups))


def _atom_end(pattern: str, start: int) -> int:
    if pattern[start] == "[":
        return _class_end(pattern, start)
    name = _CLASS_NAME.match(pattern, start)
    return name.end() if name else start + 1


def _atom_cost(atom: str) -> int:
    class_costs = [_CLASS_COSTS.get(name[0][1], 1) for name in _CLASS_NAME.finditer(atom)]
    if atom[0] == "[":
        is_narrow = atom.isascii() and atom[1:2] != "^"
        return max([2 if is_narrow else 4, *class_costs])
    return 4 if atom == "." else max([1, *class_costs])


def _highest(repetition: re.Match[str]) -> int:
    return max(int(number[:9] or 0) for number in (repetition[1], repetition[3]))


def _class_end(pattern: str, start: int) -> int:
    """Return the end of the class that begins at `start`; classes may be nested."""
    depth, position = 0, start
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            position += 1
        elif character == "[":
            depth += 1
            position += pattern[position + 1 : position + 2] == "^"
            position += pattern[position + 1 : position + 2] == "]"  # a literal bracket
        elif character == "]":
            depth -= 1
            if not depth:
                return position + 1
        position += 1
    return len(pattern)


def evaluations(schema: Schema, resolve: Resolve, limit: int = EVALUATIONS_LIMIT) -> int:
    """Return how often a schema looks at a value and its contents, along the worst path.

    `resolve` returns the schema of a reference. Counting stops above `limit`. A schema that refers
    to itself on the same value would never end, so its cost is above `limit`.
    """
    return _Cost(resolve, limit).of(schema)


class _Cost:
    """The costs of the subschemas of one schema."""

    def __init__(self, resolve: Resolve, limit: int) -> None:
        self.resolve, self.limit = resolve, limit
        self._schemas: dict[int, Schema] = {}
        self._together: dict[int, Counter[int]] = {}
        self._known: dict[tuple[int, int], int] = {}
        self._work = 0

    def of(self, schema: object, depth: int = _DEPTH) -> int:
        """Return the cost of a schema for values of this nesting depth."""
        if not isinstance(schema, Mapping):
            return 1
        key = (id(schema), depth)
        if key not in self._known:
            self._known[key] = self._count(schema, depth)
        return self._known[key]

    def _count(self, schema: Schema, depth: int) -> int:
        times_by_schema = self._all_on_one_value(schema)
        total = sum(times_by_schema.values())
        if not depth or total > self.limit or self._work > _WORK_LIMIT:
            return min(total, self.limit + 1) if self._work <= _WORK_LIMIT else self.limit + 1
        below: Counter[str] = Counter()
        for identifier, times in times_by_schema.items():
            for name, child in _children(self._schemas[identifier]):
                self._work += 1
                below[name] += times * self.of(child, depth - 1)
        shared = below.pop("", 0)  # schemas that any property or item may meet
        return min(total + shared + max(below.values(), default=0), self.limit + 1)

    def _all_on_one_value(self, schema: Schema) -> Counter[int]:
        """Count how often this schema applies each schema to its own value."""
        identifier = id(schema)
        self._schemas[identifier] = schema
        if identifier not in self._together:
            too_many = Counter({identifier: self.limit + 1})
            self._together[identifier] = too_many  # if it refers to itself
            counts = Counter({identifier: 1})
            for subschema in self._in_place(schema):
                if isinstance(subschema, Mapping):
                    counts.update(self._all_on_one_value(subschema))
            self._work += len(counts)
            is_counted = sum(counts.values()) <= self.limit and self._work <= _WORK_LIMIT
            self._together[identifier] = counts if is_counted else too_many
        return self._together[identifier]

    def _in_place(self, schema: Schema) -> Iterator[object]:
        for name in _IN_PLACE_LISTS:
            yield from _items(schema.get(name))
        for name in _IN_PLACE:
            yield schema.get(name)
        yield from _values(schema.get("dependentSchemas"))
        if isinstance(reference := schema.get("$ref"), str):
            yield self.resolve(reference)


def _children(schema: Schema) -> Iterator[tuple[str, object]]:
    """Yield the schemas of a value's contents, each with the name of its property."""
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        yield from properties.items()
    for number, item in enumerate(_items(schema.get("prefixItems"))):
        yield str(number), item
    for name in _CHILDREN:
        if name in schema:
            yield "", schema[name]


def _items(value: object) -> Iterable[object]:
    return value if isinstance(value, list) else ()


def _values(value: object) -> Iterable[object]:
    return value.values() if isinstance(value, Mapping) else ()
