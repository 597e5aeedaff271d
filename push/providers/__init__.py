"""The push providers: APNs, FCM, Web Push and Salesforce's mobile app.

They keep the contract of all providers (`rme.core.provider`); messaging's registry lists them.
`base` has what they share: credentials, backoff, and one more try with a new credential.
"""

from push.providers.apns import Apns
from push.providers.fcm import Fcm
from push.providers.salesforce import SalesforcePush
from push.providers.webpush import WebPush

__all__ = ["Apns", "Fcm", "SalesforcePush", "WebPush"]
