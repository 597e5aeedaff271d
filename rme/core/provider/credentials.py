"""Secrets in the settings of accounts, and which of them a change of the settings may keep.

A pydantic settings class declares both: a secret is a `SecretStr`, and a field that decides where
the secrets are sent, or whom the connection trusts, is annotated with `DESTINATION`. Users who may
write settings cannot read the secrets. So a change of a destination has to repeat them, or it
could send the stored ones to an address of the user's choice.
"""

import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Union, get_args, get_origin

from django.utils.translation import gettext, gettext_lazy
from pydantic import Field, SecretBytes, SecretStr, StringConstraints, ValidationError
from pydantic.fields import FieldInfo

REPEATED_VALUE_NEEDED = gettext_lazy(
    "Give this again: it would be sent to another destination than before."
)


class Destination:
    """Marks a setting that decides where an account's secrets are sent."""


DESTINATION = Destination()
Host = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9._:-]+$", min_length=1, max_length=253),
    DESTINATION,
]
Port = Annotated[int, Field(ge=1, le=65535), DESTINATION]
CaPem = Annotated[
    str, Field(description="Certificates (PEM) to trust instead of the usual ones."), DESTINATION
]
"""Certificates to trust. A person who sets their own can intercept the connection to the host."""


def types_of(annotation: object) -> list[object]:
    """Return the types that a value may have (`SecretStr | None` has two)."""
    if get_origin(annotation) is Annotated:
        return types_of(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return [each for part in get_args(annotation) for each in types_of(part)]
    return [annotation]


def is_secret(info: FieldInfo) -> bool:
    """Check whether a setting must never be shown."""
    return any(kind in (SecretStr, SecretBytes) for kind in types_of(info.annotation))


def is_destination(info: FieldInfo) -> bool:
    """Check whether a setting decides where secrets are sent."""
    return _marked([*info.metadata, info.annotation])


def _marked(parts: list[object]) -> bool:
    """Return whether a part is a marker, also inside a union, which pydantic does not look into."""
    return any(isinstance(part, Destination) or _marked(list(get_args(part))) for part in parts)


def keep_secrets(
    fields: Mapping[str, FieldInfo],
    stored_values: Mapping[str, object],
    new_values: Mapping[str, object],
) -> tuple[dict[str, object], list[str]]:
    """Return the settings to store, and the names of the secrets that must be given again.

    An empty secret keeps the stored one, unless a destination changes.
    """
    moved = any(
        is_destination(info)
        and _effective(info, stored_values.get(name)) != _effective(info, value)
        for name, info in fields.items()
        for value in (new_values.get(name),)
    )
    settings = {name: value for name, value in new_values.items() if name in fields and value != ""}
    names_to_enter = []
    for name, info in fields.items():
        if is_secret(info) and name not in settings and stored_values.get(name):
            if moved:
                names_to_enter.append(name)
            else:
                settings[name] = stored_values[name]
    return settings, names_to_enter


def setting_problems(error: ValidationError) -> Iterator[tuple[str, str]]:
    """Yield each setting that isn't valid and its problem; the name is empty for all of them."""
    # without the input, which may be the secret
    for problem in error.errors(include_input=False, include_url=False):
        is_missing = problem["type"] == "missing"
        text = gettext("This field is required.") if is_missing else problem["msg"]
        yield str((*problem["loc"], "")[0]), text.removeprefix("Value error, ")


def _effective(info: FieldInfo, value: object) -> str:
    """Return a setting in a comparable form: forms store text, and browsers rewrite line ends."""
    if value in (None, ""):
        value = None if info.is_required() else info.get_default(call_default_factory=True)
    return "" if value is None else " ".join(str(value).split())
