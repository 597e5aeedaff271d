"""Organizations, and the access of people and programs: roles, OAuth applications, API keys.

Other packages import `models`, `organizations`, `authentication`, `api_keys`, `applications`,
`roles`, `access`, `across`, `imports`, `prepared_imports`, `call_limits`, `cells`, `audit`,
`change_log`, the base classes of `admin`, `languages`, `latest`, `logins`, `masking`, `oauth`,
`request_log` and `urls`.
"""
