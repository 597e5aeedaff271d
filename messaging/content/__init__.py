"""Templates and their versions, rendering, and the links in what is sent.

Other packages use `templates` (find and activate versions), `compose` (render one delivery),
`rendering` (render alone), `previews`, `catalog`, `inputs` (what callers send), `partials`,
`links`, `tracked_links` and `brand`.
"""
