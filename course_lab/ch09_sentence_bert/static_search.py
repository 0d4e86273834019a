"""Search of all of `pydocs` without a model at hand: vectors of pieces, trained
siamese, that are averaged.

BERT's layers are too much to send to every reader, and so are 75,000 vectors of
paragraphs. What remains of a siamese encoder without its layers is one table: a vector
for each piece, and a sentence is the mean. It is trained as chapter 9 trains its
encoders, on pairs of neighbours in the training split, and measured on summaries of the
test split.

Q  queries     N  documents     D  features
"""

import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from datasets import Dataset
from filelock import FileLock
from jaxtyping import Float
from torch import Tensor, nn

import course_lib
from course_lab.ch04_wordpiece.tokenizer_explorer import tokenizer_data
from course_lab.ch04_wordpiece.wordpiece_page import character_tables
from course_lab.ch06_pretraining.shipped import CHECKPOINTS
from course_lab.ch09_sentence_bert import bm25
from course_lab.ch09_sentence_bert.bm25 import Bm25
from course_lab.ch09_sentence_bert.licences import licence_of
from course_lab.ch09_sentence_bert.search_explorer import (
    Document,
    quantised,
    restored,
    search_data,
    search_explorer,
)
from course_lab.ch09_sentence_bert.sentence_encoders import StaticSentences, static_from
from course_lab.ch09_sentence_bert.sentences import Search, holding, ranks, true_pairs
from course_lib.bert.files import load_bert
from course_lib.data import load, pydocs
from course_lib.data.arrow_cache import folder_for
from course_lib.data.sentences import split_sentences
from course_lib.figures.explorer import Explorer
from course_lib.files import digest_of_code, write_whole
from course_lib.metrics.scores import mean_interval
from course_lib.sentence_bert.losses import in_batch_losses
from course_lib.sentence_bert.model import token_ids
from course_lib.training.loop import TrainingConfig, batches, train
from course_lib.wordpiece.fast import FastWordPiece

# searcher.js names them so
WORDS, VECTORS, BOTH = ("By words (BM25)", "By vectors", "Both added")
UNTRAINED = "By vectors, before training"
QUESTION = "find the function that computes the inverse of a matrix"
SOURCE = "_static/search/pydocs.js"  # where the site has the data, from the page
SHORTEST = 4  # words of a first sentence that is worth asking for
SHOWN = 3  # hits of the example, for each way
# Chosen on the validation split.
BATCH, TEMPERATURE = 256, 0.05
CONFIG = TrainingConfig(
    steps=400,
    learning_rate=1e-2,
    schedule="linear",
    weight_decay=0.0,
    clip_norm=None,
    progress=False,
)


class StaticTable(nn.Module):
    """One vector for each piece; a text is the mean of its pieces."""

    def __init__(self, first: Float[Tensor, "V D"]):
        super().__init__()
        self.vectors = nn.EmbeddingBag.from_pretrained(
            first.clone(), freeze=False, mode="mean"
        )

    def forward(self, bags: tuple[Tensor, Tensor]) -> Float[Tensor, "B D"]:
        """Return the mean of each bag: flat ids, and where each begins."""
        return self.vectors(*bags)


def neighbours(documents: Iterable[Sequence[str]]) -> list[tuple[str, str]]:
    """Return texts that stand side by side: what one says is near to what the other
    says."""
    found = []
    for paragraphs in documents:
        found += [(paragraphs[0], second) for second in paragraphs[1:2]]
        for paragraph in paragraphs:
            first, *others = split_sentences(paragraph)
            if others and len(first.split()) >= SHORTEST:
                found.append((first, " ".join(others)))
    return found


def train_table(
    pairs: Sequence[tuple[str, str]],
    tokenizer: FastWordPiece,
    first: Float[Tensor, "V D"],
    config: TrainingConfig,
) -> Float[Tensor, "V D"]:
    """Train vectors of pieces so that the means of a pair's two texts are alike, and
    those of other pairs are not."""
    sides = [
        [ids[1:-1] for ids in token_ids(tokenizer, texts)]
        for texts in zip(*pairs, strict=True)
    ]
    rows = [pair for pair in zip(*sides, strict=True) if all(pair)]

    def collate(batch: list[tuple[list[int], ...]]) -> list[tuple[Tensor, Tensor]]:
        return [_bags(side) for side in zip(*batch, strict=True)]

    def loss(model: nn.Module, batch: Any) -> tuple[Tensor, int]:
        queries, documents = (model(bags) for bags in batch)
        return in_batch_losses(
            queries, documents, TEMPERATURE, both_ways=True
        ).sum(), len(queries)

    model = StaticTable(first)
    train(
        model,
        lambda epoch: batches(rows, BATCH, config.seed, epoch, collate),
        loss,
        config,
    )
    return model.vectors.weight.detach().cpu()


def _bags(side: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    starts = torch.tensor([0, *map(len, side)]).cumsum(0)[:-1]
    return (
        torch.tensor([index for ids in side for index in ids], dtype=torch.long),
        starts,
    )


# -- the collection
# --------------------------------------------------------------------------------------


def all_documents(splits: Iterable[Dataset]) -> list[Document]:
    """Return all of the corpus, in the order of packages, modules and titles; a
    paragraph that is there twice, once."""
    known: set[str] = set()
    found = []
    columns = ("package", "module", "title", "paragraphs")
    every = [
        row
        for split in splits
        for row in zip(*(split[name] for name in columns), strict=True)
    ]
    for package, module, title, paragraphs in sorted(every, key=lambda row: row[:3]):
        new = [text for text in dict.fromkeys(paragraphs) if text not in known]
        known.update(new)
        if new:
            found.append(
                Document(
                    package,
                    title if title.startswith(module) else f"{module}: {title}",
                    new,
                )
            )
    return found


# -- measuring
# --------------------------------------------------------------------------------------


class Measured(NamedTuple):
    """How well one way finds descriptions."""

    name: str  # the way
    #: mrr, ten: The mean reciprocal rank and the share among the first ten, over the
    #: queries.
    mrr: float
    #: mrr_half, ten_half: half the width of their 95% intervals, over queries.
    mrr_half: float
    ten: float
    ten_half: float


def held_out(
    documents: Sequence[Document], split: str = "test"
) -> tuple[Search, list[int]]:
    """Make a search from the true pairs of a split: find their descriptions among all
    paragraphs."""
    pairs = true_pairs(load("pydocs-pair", source="embedded")[split])
    texts = list(dict.fromkeys([*_flat(documents), *(text for _, text in pairs)]))
    place = {text: index for index, text in enumerate(texts)}
    right = [place[text] for _, text in pairs]
    told = holding(texts, (text for pair in pairs for text in pair))
    return Search([query for query, _ in pairs], texts, right), sorted(
        told - set(right)
    )


def _flat(documents: Sequence[Document]) -> list[str]:
    return [text for document in documents for text in document.paragraphs]


def all_scores(
    queries: Sequence[str],
    documents: Sequence[str],
    before: StaticSentences,
    after: StaticSentences,
) -> dict[str, Tensor]:
    """Score all documents for all queries in each way."""
    words = Bm25(documents).scores(queries)
    cut = [after.pieces(texts) for texts in (queries, documents)]
    cosines = []
    for table in (before, after):
        of_queries, of_documents = (
            F.normalize(table.means(pieces), dim=1) for pieces in cut
        )
        cosines.append(of_queries @ of_documents.T)  # (Q, D) @ (D, N) -> (Q, N)
    both = words / words.amax(dim=1, keepdim=True).clamp(min=1e-9) + cosines[1]
    return {WORDS: words, UNTRAINED: cosines[0], VECTORS: cosines[1], BOTH: both}


def places_of(scores: Tensor, right: Sequence[int], hidden: Sequence[int]) -> Tensor:
    """Return the place of each query's right document among those that are not hidden;
    arguments as elsewhere."""
    return ranks(scores.index_fill(1, torch.tensor(hidden), -torch.inf), right)


def measure_ways(
    scores: Mapping[str, Tensor], right: Sequence[int], hidden: Sequence[int]
) -> list[Measured]:
    """Measure chance, and each way of searching."""
    number = next(iter(scores.values())).shape[1] - len(hidden)
    found = [
        Measured(
            "in random order",
            float((1 / torch.arange(1, number + 1)).mean()),
            0.0,
            10 / number,
            0.0,
        )
    ]
    for name, values in scores.items():
        places = places_of(values, right, hidden)
        mrr = mean_interval((1 / places).tolist())
        ten = mean_interval((places <= 10).float().tolist())
        found.append(Measured(name, mrr.mean, mrr.half_width, ten.mean, ten.half_width))
    return found


# -- all of it, made once
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    """What the page shows."""

    script: Path  # the file that the browser loads
    #: How many there are of what, what was measured, and what the example finds.
    told: dict[str, Any]

    @property
    def measured(self) -> list[Measured]:
        """How well each way does."""
        return [Measured(*row) for row in self.told["measured"]]

    def explorer(self) -> Explorer:
        """Return what the page's cell shows."""
        size, found = self.script.stat().st_size, self.told["found"]
        return search_explorer(SOURCE, size, self.told["paragraphs"], QUESTION, found)


def make() -> Made:
    """Train, measure and write the script, unless that has been done from the same
    code, packages and checkpoint."""
    folder = folder_for("pydocs-search", _ingredients())
    script, told = folder / "pydocs.js", folder / "told.json"
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not told.is_file():
            text, figures = _make()
            write_whole(script, text)
            write_whole(told, json.dumps(figures))  # it says that all is there
    return Made(script, json.loads(told.read_text(encoding="utf-8")))


def _ingredients() -> dict[str, str]:
    library = sorted(Path(course_lib.__file__).parent.rglob("*.py"))
    shipped = [
        CHECKPOINTS / "tiny" / n for n in ("model.safetensors", "tokenizer.json")
    ]
    return {
        **pydocs.fingerprint(),
        "torch": torch.__version__,
        "code": digest_of_code([__file__, *library], imports=False),
        **{
            path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in shipped
        },
    }


def _make() -> tuple[str, dict[str, Any]]:
    corpus = load("pydocs", source="embedded")
    documents = all_documents(corpus.values())
    tokenizer, first = _first_vectors()
    pairs = neighbours(corpus["train"]["paragraphs"]) + true_pairs(
        load("pydocs-pair", source="embedded")["train"]
    )
    numbers, scales = quantised(train_table(pairs, tokenizer, first, CONFIG).numpy())
    after = StaticSentences(torch.from_numpy(restored(numbers, scales)), tokenizer)
    search, hidden = held_out(documents)
    scores = all_scores(
        [*search.queries, QUESTION],
        search.documents,
        StaticSentences(first, tokenizer),
        after,
    )
    of_queries = {way: rows[:-1] for way, rows in scores.items()}
    early = {
        way: places_of(rows, search.right, hidden) <= 10
        for way, rows in of_queries.items()
    }
    names = [document.title for document in documents for _ in document.paragraphs]
    best = {
        way: scores[way][-1, : len(names)].topk(SHOWN).indices.tolist()
        for way in (WORDS, VECTORS, BOTH)
    }
    told = {
        "paragraphs": len(names),
        "documents": len(documents),
        "pairs": len(pairs),
        "queries": len(search.queries),
        "collection": len(search.documents) - len(hidden),
        "pieces": len(tokenizer),
        "features": first.shape[1],
        "steps": CONFIG.steps,
        "batch": BATCH,
        "measured": measure_ways(of_queries, search.right, hidden),
        "only_words": int((early[WORDS] & ~early[VECTORS]).sum()),
        "only_vectors": int((early[VECTORS] & ~early[WORDS]).sum()),
        "found": {
            way: [(names[index], search.documents[index]) for index in rows]
            for way, rows in best.items()
        },
        "packages": [[name, *licence_of(name)[:2]] for name in pydocs.PACKAGES],
    }
    licences = {name: licence_of(name) for name in pydocs.PACKAGES}
    words = tokenizer_data(tokenizer.pieces, *character_tables())
    return (
        search_data(words, numbers, scales, documents, licences, (bm25.K1, bm25.B)),
        told,
    )


def _first_vectors() -> tuple[FastWordPiece, Tensor]:
    folder = CHECKPOINTS / "tiny"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*left aside")
        bert = load_bert(folder, dtype=torch.float32)
    tokenizer = FastWordPiece.load(folder)
    return tokenizer, static_from(bert, tokenizer).matrix
