"""A step that must not fail what stands beside it: its error is kept, as a value."""

from types import TracebackType


class ErrorBoundary:
    """Runs a block and keeps the error that ended it. What ends the process passes."""

    error: Exception | None = None

    def __enter__(self) -> "ErrorBoundary":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if isinstance(error, Exception):
            self.error = error
        return self.error is not None
