"""What rendering can answer instead of a text: three exceptions, and nothing else comes out."""


class TemplateSyntax(Exception):
    """A text that is not a template: where, and why. Line and column count from 1."""

    def __init__(self, message: str, line: int = 1, column: int = 1, field: str = "") -> None:
        self.message, self.line, self.column, self.field = message, line, column, field
        super().__init__(message, line, column, field)

    def __str__(self) -> str:
        place = f"line {self.line}, column {self.column}"
        return (
            f"{self.field}, {place}: {self.message}" if self.field else f"{place}: {self.message}"
        )

    def of(self, field: str) -> "TemplateSyntax":
        """Give the same problem, with the field it was found in."""
        return type(self)(self.message, self.line, self.column, field)


class PartialProblem(TemplateSyntax):
    """A text that is a template, but for a partial that is missing or broken."""


class RenderLimit(Exception):
    """A template that wants more time, output, loops or memory than it may have."""


class RenderFailed(Exception):
    """A template that cannot be rendered with this data."""


def syntax_at(message: str, source: str, position: int) -> TemplateSyntax:
    """Make a TemplateSyntax from a position in the source."""
    before = source[: max(position, 0)]
    return TemplateSyntax(message, before.count("\n") + 1, len(before) - before.rfind("\n"))
