"""An app of the release after that of `staged`, for tests/test_post_deploy.py."""
