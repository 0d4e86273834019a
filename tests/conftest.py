"""Every test runs with the shapes in the library's signatures checked: a wrong shape is a failing test."""

from jaxtyping import install_import_hook

install_import_hook("course_lib", "beartype.beartype")
