"""Random numbers of one stream for two processes, of which neither is trusted.

Before a call the grader's side sends the state of its generators; afterwards the
student's side says how far it drew. Were any state taken on trust, a student could make
all later test data zeros. So a state is accepted only if drawing from the state before
leads to it (:func:`reachable`); any other is ignored.
"""

import random
import struct
from typing import Any

from course_tools.grading.bridge.torch_here import torch

#: torch's state of its Mersenne Twister: seed, words left in the block, a flag, place
#: of the next word, the block.
HEAD = struct.Struct("<Qiiq")
END = HEAD.size + 624 * 8
STATE_BYTES = 5056
BLOCKS = 20_000


def reachable(now: torch.Tensor, claimed: bytes) -> torch.Tensor | None:
    """Draw from a state until it is the one that is claimed."""
    if len(claimed) != STATE_BYTES or now.numel() != STATE_BYTES:
        return None
    wanted = claimed[:END]  # what follows does not decide what is drawn
    generator = torch.Generator()
    generator.set_state(now)
    for _ in range(BLOCKS):
        state = state_of(generator)[:END]
        if state[HEAD.size :] == wanted[HEAD.size :]:
            break
        left = max(HEAD.unpack(state[: HEAD.size])[1], 1)
        torch.empty(left, dtype=torch.int32).random_(generator=generator)
    else:
        return None
    for _ in range(626):
        if state_of(generator)[:END] == wanted:
            return generator.get_state()
        torch.empty(1, dtype=torch.int32).random_(generator=generator)
    return None


Generator = torch.Generator | random.Random
PYTHON_STATE = struct.Struct("<625I")
NORMAL = struct.Struct("<d")


def state_of(generator: Generator) -> bytes:
    """The state of a generator, of Python's without half-used normal pairs."""
    if isinstance(generator, random.Random):
        return PYTHON_STATE.pack(*generator.getstate()[1])
    return generator.get_state().numpy().tobytes()


def with_state(state: bytes) -> Generator:
    """Make a generator with this state; its length tells the kind."""
    if len(state) == PYTHON_STATE.size:
        python = random.Random()
        python.setstate((3, PYTHON_STATE.unpack(state), None))
        return python
    generator = torch.Generator()
    generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))
    return generator


def draw_on(generator: Generator, claimed: bytes) -> None:
    """Bring a generator to the state that is claimed, if drawing leads there."""
    if isinstance(generator, random.Random):
        if len(claimed) == PYTHON_STATE.size:
            _draw_on_python(generator, PYTHON_STATE.unpack(claimed))
    elif (accepted := reachable(generator.get_state(), claimed)) is not None:
        generator.set_state(accepted)


class Randomness:
    """The states of torch's and Python's generators, as calls pass them on."""

    def __init__(self) -> None:
        self.sent: tuple[bytes, bytes] | None = None

    @staticmethod
    def now() -> tuple[bytes, bytes]:
        """Both states: Python's is 625 words, and perhaps half a normal pair."""
        _, words, normal = random.getstate()
        kept = b"" if normal is None else NORMAL.pack(normal)
        return torch.get_rng_state().numpy().tobytes(), PYTHON_STATE.pack(*words) + kept

    def watch_seeds(self) -> None:
        """Notice each seeding: the same seed set twice is sent twice."""
        seeding = [(torch, "manual_seed"), (torch.random, "manual_seed")]
        for module, name in [*seeding, (torch, "set_rng_state"), (random, "seed")]:
            setattr(module, name, self._noticing(getattr(module, name)))

    def _noticing(self, function: Any) -> Any:
        def seeding(*args: Any, **kwargs: Any) -> Any:
            self.sent = None
            return function(*args, **kwargs)

        return seeding

    def to_send(self) -> tuple[bytes, bytes] | None:
        """Both states, or None if the other side has them."""
        state = self.now()
        if state == self.sent:
            return None
        self.sent = state
        return state

    def adopt(self, states: tuple[bytes, bytes] | None) -> None:
        """Go on from the states that the trusted side sent."""
        if states is None:
            self.sent = self.now()
        else:
            self.sent = theirs, python = states
            torch.set_rng_state(torch.frombuffer(bytearray(theirs), dtype=torch.uint8))
            words, kept = python[: PYTHON_STATE.size], python[PYTHON_STATE.size :]
            (normal,) = NORMAL.unpack(kept) if kept else (None,)
            random.setstate((3, PYTHON_STATE.unpack(words), normal))

    def to_return(self) -> tuple[bytes | None, bytes | None]:
        """What was drawn from during the call: each state, or None."""
        before, now = self.sent, self.now()
        if before is None:
            return now
        theirs, python = (
            None if n == b else n for n, b in zip(now, before, strict=True)
        )
        return theirs, python

    def accept(self, states: Any) -> None:
        """Take over how far the other side drew, if it can be so."""
        if type(states) is not tuple or len(states) != 2:
            return
        theirs, python = states
        if type(theirs) is bytes:
            draw_on(torch.default_generator, theirs)
        if type(python) is bytes and len(python) >= PYTHON_STATE.size:
            words = PYTHON_STATE.unpack(python[: PYTHON_STATE.size])
            _draw_on_python(random, words)
        self.sent = self.now()


def _draw_on_python(mine: Any, words: tuple[int, ...]) -> None:
    """The same for a generator of the module ``random``, or the module's own."""
    generator = random.Random()
    generator.setstate(mine.getstate())
    for _ in range(BLOCKS):
        block = generator.getstate()[1]
        if block[:624] == words[:624]:
            break
        generator.getrandbits(32 * (625 - block[624]) if block[624] <= 624 else 32)
    else:
        return
    for _ in range(626):
        if generator.getstate()[1] == words:
            mine.setstate(generator.getstate())
            return
        generator.getrandbits(32)
