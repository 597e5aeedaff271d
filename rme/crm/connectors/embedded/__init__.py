"""The embedded platform: records in our own tables. Others import `Embedded` from `connector`."""
