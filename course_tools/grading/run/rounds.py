"""In which order the rounds of a class run, and what may be told of each.

A process that has run hidden tests could leave a mark in what outlives it, in the
machine's caches say, and another student's process could read it. No wall closes every
such way, but an order does: words are kept of visible rounds alone, and only of those
that had ended before the first hidden round of the release began. So all visible rounds
of a class come first; then that hidden rounds begin is written down; then they run, and
give points. Whatever runs later on the same release gets points alone.

What a visible round gave is kept on the disk. So a command that was killed before the
marks were recorded still has every student's words when it is started again, and so has
one that judges the same notebooks by a mended hidden test.
"""

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

from nbformat import NotebookNode

from course_lib.files import write_whole
from course_tools.grading.run.execute import Transcript
from course_tools.grading.run.record import append, lines, now

FOLDER = "grading-rounds"
POINTS_ALONE = (
    "Points alone: hidden tests of this assignment had already run when this notebook"
    " was graded, and what a later run says could give them away. Run `course check` on"
    " your notebook: it says what the tests that you see find."
)


class Rounds:
    """What is kept of the rounds of one release, in a course folder."""

    def __init__(self, root: Path, assignment: str, released: NotebookNode) -> None:
        self.folder = root / FOLDER / assignment
        self.record = root / FOLDER / f"{assignment}.jsonl"
        self.release = hashlib.sha256(
            json.dumps(released.cells, sort_keys=True).encode()
        ).hexdigest()

    def hidden_began(self) -> bool:
        """Say whether a hidden round of this release may have begun, ever."""
        return any(line["release"] == self.release for line in lines(self.record))

    def begin_hidden(self) -> None:
        """Write down that hidden rounds begin, and wait until it is on the disk."""
        if not self.hidden_began():
            self.record.parent.mkdir(parents=True, exist_ok=True)
            append(self.record, {"time": now(), "release": self.release})

    def keep(self, student: str, key: str, visible: bytes) -> None:
        """Keep a visible round's packed transcript as the student's last."""
        self.folder.mkdir(parents=True, exist_ok=True)
        data = (self.release + key).encode() + visible
        write_whole(self._place(student), lambda place: _write(place, data))

    def kept(self, student: str, key: str) -> bytes:
        """Give it back; nothing of another release or another round."""
        place, head = self._place(student), (self.release + key).encode()
        data = place.read_bytes() if place.exists() else b""
        return data[len(head) :] if data.startswith(head) else b""

    def _place(self, student: str) -> Path:
        return self.folder / f"{student}.visible"


def _write(place: Path, data: bytes) -> None:
    with place.open("wb") as file:
        file.write(data)
        os.fsync(file.fileno())


def without_words(visible: Transcript) -> Transcript:
    """Of a visible round that may tell nothing, what is needed all the same."""
    kept = ("trouble", "over", "seconds", "deadly", "late", "late_beside")
    return Transcript(
        points_alone=True, **{name: getattr(visible, name) for name in kept}
    )


def joined(visible: Transcript, hidden: Transcript) -> Transcript:
    """Words of the visible round, marks of the hidden one."""
    one, other = visible.repeated, hidden.repeated
    return replace(
        visible,
        marks=hidden.marks,
        trouble=hidden.trouble,
        over=visible.over or hidden.over,
        seconds=visible.seconds + hidden.seconds,
        late_beside=max(visible.late_beside, hidden.late_beside),
        repeated={n: max(one.get(n, 0), other.get(n, 0)) for n in one | other},
    )


def words(transcript: Transcript) -> list[str]:
    """Tell how the rounds came to their result, where that is not plain."""
    chance = "is declared to depend on chance."
    said = [
        f"{name} {chance} It was run {count} times, and the best counts."
        for name, count in transcript.repeated.items()
    ]
    if (count := transcript.late_beside) > 0:
        others = f"{count} other submission{'s' * (count > 1)}"
        late = f"It was stopped as late while {others} ran"
        said.append(f"{late}; it was run again alone, and that counts.")
    return said + [POINTS_ALONE] * transcript.points_alone
