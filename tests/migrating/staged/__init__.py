"""An app with a post-deploy migration, for tests/test_post_deploy.py."""
