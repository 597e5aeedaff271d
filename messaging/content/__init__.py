"""Templates, versions, rendering and previews."""
