"""What callers name an organization by: no other organization of the target may have it."""

from rme.cells.moving.databases import Connection

_NAMED = {
    "API key": ("tenants_apikey", "public_id"),
    "client": ("tenants_application", "client_id"),
    "provider account": ("messaging_provideraccount", "public_id"),
}
"""The columns by which the router finds a cell, but for those with digests of 256 random bits."""
_OWN = " UNION ALL ".join(
    f"SELECT '{kind}', {column}::text FROM {table} WHERE organization_id = %(organization)s"
    for kind, (table, column) in _NAMED.items()
)
_TAKEN = " UNION ALL ".join(
    f"SELECT '{kind}', t.{column}::text FROM {table} t JOIN unnest(%(kinds)s::text[], "
    f"%(values)s::text[]) given(kind, value) ON t.{column} = given.value "
    f"WHERE given.kind = '{kind}' AND t.organization_id <> %(organization)s"
    for kind, (table, column) in _NAMED.items()
)


def taken(source: Connection, target: Connection, organization_id: str) -> list[str]:
    """Return the keys of an organization that others have in the target, as texts."""
    pairs = source.execute(_OWN, {"organization": organization_id}).fetchall()
    parameters = {
        "kinds": [kind for kind, _ in pairs],
        "values": [value for _, value in pairs],
        "organization": organization_id,
    }
    return sorted(f"the {kind} {value}" for kind, value in target.execute(_TAKEN, parameters))
