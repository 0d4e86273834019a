"""What a published BERT computes, in our code and in `transformers`: tokens, shapes and
states that chapter 5 shows.

The states of both must agree, or the program fails.

    python benchmarks/published_checkpoint.py --folder FOLDER --name NAME [--record]
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from side_by_side import check_same, read_settings, save, setting, show
from transformers import BertModel as Peer

from course_lab.ch05_bert import published
from course_lib.bert.files import load_bert
from course_lib.wordpiece.fast import FastWordPiece


@dataclass(frozen=True)
class Settings:
    """Which checkpoint."""

    name: str = setting(
        "sentence-transformers/all-MiniLM-L6-v2", "what the hub calls the checkpoint"
    )
    seed: int = setting(0, "of the untrained model of the same sizes")
    threads: int = setting(1, "threads")
    folder: str = setting("all-MiniLM-L6-v2", "where it lies on this machine")


def agreement(folder: Path) -> float:
    """Return by how much a state of ours differs from that of `transformers`, at
    most; refuse more than rounding."""
    tokenizer, largest = FastWordPiece.load(folder), 0.0
    ours = load_bert(folder, dtype=torch.float32).eval()
    theirs = Peer.from_pretrained(folder, dtype=torch.float32).eval()
    for text, pair in published.TEXTS:
        encoding = tokenizer.encode(text, pair)
        states = published.encode(ours, encoding).last_hidden_state
        with torch.no_grad():
            peers = theirs(
                torch.tensor([encoding.ids]),
                token_type_ids=torch.tensor([encoding.type_ids]),
            ).last_hidden_state
        check_same(text, states, peers, "fp32")
        largest = max(largest, (states - peers).abs().max().item())
    return largest


def main(words: Sequence[str] | None = None) -> None:
    """Compare, print and record."""
    settings, record = read_settings(Settings, words, __doc__)
    torch.set_num_threads(settings.threads)
    folder = Path(settings.folder)
    rows = [
        *published.run(folder, settings.seed),
        {"what": "difference from transformers", "largest": agreement(folder)},
    ]
    columns = {"what": lambda row: row["what"], "found": lambda row: str(row)}
    show(settings.name, rows, columns)
    if record:
        save("benchmark-published_checkpoint", settings, rows)


if __name__ == "__main__":
    main()
