"""Start a Jupyter kernel, inside bubblewrap, in namespaces and limits of its own.

    python -m course_tools.grading.sandbox.kernel_inside LIMITS KERNEL...

LIMITS is JSON: :class:`course_tools.grading.sandbox.sandbox.Limits` as a dict, with
``hide``, folders to cover, and ``work``, the folder to work in.
"""

import json
import os
import resource
import sys

from course_tools.grading.sandbox import confine


def main() -> None:
    """Shut this process in, and be the kernel."""
    limits, kernel = json.loads(sys.argv[1]), sys.argv[2:]
    mapped = confine.virtual_bytes()
    confine.only_these_files([])
    confine.become_nobody()
    confine.leave_the_world()
    first = os.fork()
    if first != 0:
        confine.init(first)
    os.setsid()
    confine.own_folders(limits["disk"], limits["hide"])
    confine.drop_privileges()
    child = os.fork()
    if child != 0:
        confine.init(child)
    os.setsid()
    # of addresses; of memory:
    confine.limit(limits | {"memory": 4 * limits["memory"]}, mapped)
    resource.setrlimit(resource.RLIMIT_DATA, (limits["memory"], limits["memory"]))
    os.chdir(limits["work"])
    home, temporary = f"{confine.OWN}/home", f"{confine.OWN}/tmp"
    os.environ.update({"HOME": home, "TMPDIR": temporary, "IPYTHONDIR": home})
    del os.environ["PYTHONPATH"]
    os.execvp(kernel[0], kernel)


if __name__ == "__main__":
    main()
