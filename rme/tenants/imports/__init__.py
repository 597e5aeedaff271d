"""Imports: a file is stored in parts, waits for its columns, is tried by a dry run, and imported.

A list (contacts, suppressions) has tables of its own, made of `FileImport` and `FilePart`,
and says how to read and apply the rows of a part. `pages` has the admin pages of such lists, with
`columns_form`, in which fields of `mend_form` check what a person types. `guessing` names columns.
"""

from rme.tenants.imports.files import (
    FileRow,
    PartResult,
    RowProblem,
    Rows,
    cancel,
    cells,
    import_next_part,
    import_part_of,
    rejected_rows,
    report,
    store,
)
from rme.tenants.imports.mending import Mends, reasons
from rme.tenants.imports.prepared import (
    begin,
    check_again,
    choose_again,
    discard,
    discard_abandoned,
    import_checked,
    named_twice,
    prepare,
    sample,
)
from rme.tenants.models import FileImport

__all__ = [
    "FileImport",
    "FileRow",
    "Mends",
    "PartResult",
    "RowProblem",
    "Rows",
    "begin",
    "cancel",
    "cells",
    "check_again",
    "choose_again",
    "discard",
    "discard_abandoned",
    "import_checked",
    "import_next_part",
    "import_part_of",
    "named_twice",
    "prepare",
    "reasons",
    "rejected_rows",
    "report",
    "sample",
    "store",
]
