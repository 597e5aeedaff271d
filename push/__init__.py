"""Push: devices, the providers that reach them, and the feedback on dead tokens.

Other packages import `devices` (registering and listing them),
`active_devices` (those that are sent to), `device_tokens`, `device_changes`
(what changed about them), `inputs` (the REST bodies), `feedback` (dead tokens), `models`, `vapid`
(the public key) and `providers` (APNs, FCM, Web Push, Salesforce).
"""
