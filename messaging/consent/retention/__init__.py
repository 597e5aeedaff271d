"""What has been kept long enough is deleted: whole partitions where that can be, else rows."""

from messaging.consent.retention.job import apply, apply_to_contents

__all__ = ["apply", "apply_to_contents"]
