"""Imports: a file is stored in parts, waits for its columns, is tried by a dry run, and imported.

A list (contacts, suppressions) has tables of its own, made of `PreparedImport` and `CheckedPart`,
and says how to read and apply the rows of a part. `pages` has the admin pages of such lists.
"""

from rme.tenants.imports.files import (
    FileImport,
    PartResult,
    Row,
    RowProblem,
    Rows,
    cancel,
    import_next_part,
    import_part_of,
    rejected_rows,
    report,
    store,
)
from rme.tenants.imports.prepared import (
    CheckedPart,
    PreparedImport,
    begin,
    discard,
    discard_abandoned,
    import_checked,
    named_twice,
    prepare,
    sample,
)

__all__ = [
    "CheckedPart",
    "FileImport",
    "PartResult",
    "PreparedImport",
    "Row",
    "RowProblem",
    "Rows",
    "begin",
    "cancel",
    "discard",
    "discard_abandoned",
    "import_checked",
    "import_next_part",
    "import_part_of",
    "named_twice",
    "prepare",
    "rejected_rows",
    "report",
    "sample",
    "store",
]
