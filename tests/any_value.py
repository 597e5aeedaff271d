"""Any value that JSON can hold, and how long Hypothesis looks for one that breaks something."""

import hypothesis
from hypothesis import strategies as st

EFFORT = hypothesis.settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[hypothesis.Phase.generate],  # making a large case small takes minutes
    suppress_health_check=list(hypothesis.HealthCheck),
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False)
    | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
