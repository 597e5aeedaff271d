"""Sentences for people. They are written in English, and the console translates them."""


class Sentence(str):
    """A sentence in English, with what a translation needs."""

    template: str
    """With named values, such as `%(name)s`: the message of the catalogue."""
    plural: str
    """The template for other counts than 1; empty if it doesn't depend on one."""
    number: int
    values: dict[str, object]
    """Texts, numbers, or further sentences."""


def sentence(template: str, /, **values: object) -> Sentence:
    """Return a sentence; marks its template for translation."""
    return _fill(template, "", 1, values)


def counted(template: str, plural: str, count: int, /, **values: object) -> Sentence:
    """Return a sentence that depends on a number, `%(count)s`; marks both of its templates."""
    return _fill(template, plural, count, {"count": count, **values})


def _fill(template: str, plural: str, count: int, values: dict[str, object]) -> Sentence:
    chosen = plural if plural and count != 1 else template
    text = Sentence(chosen % {name: in_english(value) for name, value in values.items()})
    text.template, text.plural, text.number, text.values = template, plural, count, values
    return text


def in_english(value: object) -> str:
    """Return a value of a sentence as English writes it."""
    return f"{value:,}" if isinstance(value, int) else str(value)
