"""What has been kept long enough is deleted: whole partitions where that can be, else rows.

`ended` finds and deletes messages that go to the archive.
"""

from messaging.store.retention.job import apply, apply_to_contents

__all__ = ["apply", "apply_to_contents"]
