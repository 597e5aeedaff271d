"""Several deployments (cells) behind one address, each with its own database and organizations.

Only `rme.settings` and `rme.urls` name this package, and only if `CELL` or `CELLS` is set: without
them it is not loaded. The core asks `rme.core.placement` whether an organization is here; the
setting `PLACES` has `placements` answer. The models are those of `rme.tenants`.

- `environment`: `CELL`, `CELLS` and `CELL_SECRET`; `signatures`: of calls between cells. No Django
- `placements`: which organizations are elsewhere, and what their calls get
- `calls` between cells; `owner`: answers whose a credential is; `identifiers`: new ids
- `pauses` and `abandoned`: the ends of pauses whose move was killed; `tasks` runs them
- `moving`: moves an organization from one cell to another
- `people`: one person in several cells
- `router`: the one address in front of the cells. No Django
- `plugged_settings`, `apps`, `admin` and `urls` join them to the service
- `two_cells`: `make run-cells`
"""
