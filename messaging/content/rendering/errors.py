"""The exceptions of rendering. It raises no others."""

from messaging.domain.sentences import sentence


class TemplateSyntax(Exception):
    """A text is not a template: the position and the reason. Line and column count from 1."""

    def __init__(self, message: str, line: int = 1, column: int = 1, field: str = "") -> None:
        self.message, self.line, self.column, self.field = message, line, column, field
        super().__init__(message, line, column, field)

    def __str__(self) -> str:
        place = sentence("line %(line)s, column %(column)s", line=self.line, column=self.column)
        return (
            f"{self.field}, {place}: {self.message}" if self.field else f"{place}: {self.message}"
        )

    def of(self, field: str) -> "TemplateSyntax":
        """Return the same error with the field that it is about."""
        return type(self)(self.message, self.line, self.column, field)


class PartialProblem(TemplateSyntax):
    """A text cannot be parsed because a partial is missing or broken."""


class RenderLimit(Exception):
    """A template exceeds its time, output, loops or memory."""


class RenderFailed(Exception):
    """A template cannot be rendered with this data."""


def syntax_at(message: str, source: str, position: int) -> TemplateSyntax:
    """Return a TemplateSyntax for a position in the source."""
    preceding = source[: max(position, 0)]
    return TemplateSyntax(
        message, preceding.count("\n") + 1, len(preceding) - preceding.rfind("\n")
    )
