"""Salesforce as a platform. Others import `Salesforce` from `connector`."""
