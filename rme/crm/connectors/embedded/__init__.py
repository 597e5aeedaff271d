"""The embedded platform: records in our own tables. Other packages import from `connector` only."""
