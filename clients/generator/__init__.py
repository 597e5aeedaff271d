"""Generate the types and methods of both clients from the OpenAPI description.

The description has conditions between fields that no type expresses ("exactly one of"), and
enumerated values that are read in any case. General generators make numbered types of each of
these; here a schema with properties is a type with these properties, and the service checks the
rest.
"""

from pathlib import Path

from clients.generator import python, typescript
from clients.generator.description import Schema

ROOT = Path(__file__).resolve().parents[1]


def files(document: Schema) -> dict[Path, str]:
    """Return the generated files by path."""
    python_package, typescript_package = ROOT / "python" / "rme_client", ROOT / "typescript" / "src"
    return {
        python_package / "types.py": python.types(document),
        python_package / "operations.py": python.operations(document, coroutines=False),
        python_package / "async_operations.py": python.operations(document, coroutines=True),
        typescript_package / "types.ts": typescript.types(document),
        typescript_package / "operations.ts": typescript.operations(document),
    }
