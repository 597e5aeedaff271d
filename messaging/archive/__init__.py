"""The archive: ended messages in Parquet files, in a folder or an S3-compatible store.

PostgreSQL holds the index of the files (`messaging.models.archive`). docs/archive.md has the
design. Off unless `ARCHIVE_URL` is set; the libraries are imported when a file is first read or
written.

Other packages use `reading` (messages by id and in pages), `records`, `erasures` (of a person),
`job` (moving messages, and health), `stores`, `contact_files` (verification) and `tasks`.
"""
