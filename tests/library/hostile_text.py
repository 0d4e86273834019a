"""The pools of hostile text as a hypothesis strategy, which finds the smallest text
that fails."""

from hypothesis import strategies as st

from course_lab.texts import pools

# A word of 10,000 characters is an example of its own: many of them in one text take
# seconds and find no more.
PARTS = {
    name: st.sampled_from(pool[:-1] if name == "long" else pool)
    for name, pool in pools().items()
}


@st.composite
def texts(draw: st.DrawFn, max_size: int = 20) -> str:
    """A text from one to four of the pools, mixed."""
    names = draw(
        st.lists(st.sampled_from(list(PARTS)), min_size=1, max_size=4, unique=True)
    )
    return "".join(
        draw(st.lists(st.one_of(*(PARTS[name] for name in names)), max_size=max_size))
    )
