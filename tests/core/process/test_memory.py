"""Memory that a worker keeps."""

import subprocess
import sys

import pytest

FAULTS = """
import resource
from rme.core.process import memory
if {keeping}:
    assert memory.keep_memory()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
blocks = [bytearray(3_000_000) for _ in range(3)]
del blocks
before = faults()
for _ in range(20):
    blocks = [bytearray(3_000_000) for _ in range(3)]
    del blocks
print(faults() - before)
"""


@pytest.mark.parametrize(("keeping", "few"), [(True, True), (False, False)])
def test_freed_memory_is_kept_for_the_next_use(keeping, few):
    """Twenty times nine megabytes are 44,000 pages."""
    program = FAULTS.format(keeping=keeping)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert (int(done.stdout) < 5_000) is few
