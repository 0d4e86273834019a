"""The pools of hostile text as a hypothesis strategy, which finds the smallest text that fails."""

from hypothesis import strategies as st

from course_lib.experiments.hostile_text import POOLS


@st.composite
def texts(draw: st.DrawFn, max_size: int = 20) -> str:
    """A text from one to four of the pools, mixed."""
    names = draw(st.lists(st.sampled_from(list(POOLS)), min_size=1, max_size=4, unique=True))
    # A word of 10,000 characters is an example of its own: many of them in one text take seconds and find no more.
    parts = st.one_of(*(st.sampled_from(POOLS[name][:-1] if name == "long" else POOLS[name]) for name in names))
    return "".join(draw(st.lists(parts, max_size=max_size)))
