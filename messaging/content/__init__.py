"""Templates and their versions, rendering, and the links in messages.

Other packages use `templates` (find and activate versions), `compose` (render one delivery),
`drafts` (written by people), `publishing` (reviews, and activation at a time), `rendering`
(render alone), `outgoing` (render sent messages), `variable_checks`, `costly_steps`, `previews`,
`samples` (values to try a template with), `catalog`, `inputs` (what callers send), `files`
(templates as files), `partials` and `tracked_links`.
"""
