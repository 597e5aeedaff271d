"""Templates as files, which live in a folder, a repository or an archive.

Other packages use `pull` (an organization's templates as files), `push` (files as drafts, or active
versions), `archives` (files in a zip), `folders` (files on disk), `xliff` (texts for translators)
and `file_types`.
"""
