"""What a referee and the grader tell each other, of bounded length."""

import base64
import json
import socket
import struct
import zlib
from typing import Any

from course_tools.grading.assignments.comparisons import expected

WORDS = 2000
PRINTED = 20_000
HEAD = struct.Struct("<Q")


def tell(control: socket.socket, event: str, content: Any) -> None:
    """Tell the grader something, in whole characters: a half cannot be written."""
    data = json.dumps([event, content], ensure_ascii=False).encode("utf-8", "replace")
    control.sendall(HEAD.pack(len(data)) + data)


def hear(control: socket.socket) -> Any:
    """Wait for what the grader says."""
    return json.loads(_exactly(control, HEAD.unpack(_exactly(control, HEAD.size))[0]))


def _exactly(control: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = control.recv(min(size - len(parts), 2**20))
        if not part:
            raise SystemExit
        parts += part
    return bytes(parts)


def bounded(told: dict[str, Any]) -> dict[str, Any]:
    """What a student's cell said, cut to texts of bounded length."""
    error, printed, result = told["error"], told["printed"], told["result"]
    keys = ("type", "message", "trace")
    if type(error) is dict:
        error = {key: str(error.get(key, ""))[:WORDS] for key in keys}
    else:
        error = None
    return {
        "error": error,
        "printed": printed[:PRINTED] if type(printed) is str else "",
        "result": result[:PRINTED] if type(result) is str else None,
    }


def packed(sources: list[str]) -> str:
    """What the references of these tests give."""
    found = {key: told for source in sources for key, told in expected(source).items()}
    return base64.b64encode(zlib.compress(json.dumps(found).encode(), 1)).decode()


def unpacked(text: str) -> dict[str, Any]:
    """Read what another referee, which met no student, has told."""
    found: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(text)))
    return found
