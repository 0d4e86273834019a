"""The data of the course: :func:`load` is the one way in."""

from course_lib.data.catalogue import DATASETS
from course_lib.data.data_set import DataSet
from course_lib.data.loading import find, load

__all__ = ["DATASETS", "DataSet", "find", "load"]
