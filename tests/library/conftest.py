"""What the library's tests share."""

import os
from pathlib import Path

import pytest

from course_lib.data.translation import Pair, generate

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of public data sets outside the repository; without it, the test is skipped and says why."""
    folder = Path(os.environ.get("COURSE_DATA") or ROOT.parent / "shared" / "data").expanduser()
    if not (folder / "multi30k").is_dir():
        pytest.skip(f"no public data: neither COURSE_DATA nor {ROOT.name}/../shared/data holds a folder multi30k")
    return folder


@pytest.fixture(scope="session")
def sentences() -> list[Pair]:
    """Generated pairs of every length from 3 to 60 English words, 26 of each."""
    return generate(26 * 58, seed=41)
