"""Every test runs with the shapes in the library's signatures checked: a wrong shape is a failing test."""

from jaxtyping import install_import_hook

# Imported before the hook, hence left out of it: no shapes there, and a million calls to generate a corpus, to look at
# each character of one or to cut it into pieces.
import course_lib.data
import course_lib.fast_wordpiece
import course_lib.text_normalization
import course_lib.wordpiece  # noqa: F401

install_import_hook("course_lib", "beartype.beartype")
