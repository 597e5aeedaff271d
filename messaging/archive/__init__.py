"""The archive: ended messages in Parquet files, in a folder or an S3-compatible store.

PostgreSQL holds the index of the files (`messaging.models.archive`). docs/archive.md has the
design. A deployment without `ARCHIVE_URL` doesn't load the package; the libraries are imported when
a file is first read or written.

The service reads by `messaging.store.archived`, which `reading` serves; `manage.py archive` uses
`job` and `contact_files`, and the worker `tasks`.
"""
