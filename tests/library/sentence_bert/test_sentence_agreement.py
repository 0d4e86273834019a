"""Vectors, losses, files and search agree with the library sentence-transformers, which
published models are made with."""

import pytest
import torch
from cases import for_each
from expect import assert_near
from sentence_peer import SENTENCES, encoder

from course_lib.sentence_bert.losses import (
    CosineObjective,
    InBatchObjective,
    SoftmaxObjective,
    TripletObjective,
)
from course_lib.sentence_bert.model import SentenceBert, pool
from course_lib.sentence_bert.search import closest_pairs, top_k

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def library():
    import sentence_transformers

    return sentence_transformers


@pytest.fixture
def cpu(library):
    """Read a folder with the library, where the tests' numbers are compared."""
    return lambda folder: library.SentenceTransformer(str(folder), device="cpu")


@for_each("how", ["mean", "cls", "max"])
@for_each("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_pooling_is_the_librarys(library, how, dtype):
    torch.manual_seed(2)
    states = torch.randn(4, 6, 5, dtype=dtype)
    mask = torch.arange(6) < torch.tensor([[6], [2], [1], [5]])
    module = library.sentence_transformer.modules.Pooling(5, pooling_mode=how)
    expected = module({"token_embeddings": states, "attention_mask": mask.long()})[
        "sentence_embedding"
    ]
    assert_near(pool(states, mask, how), expected, 0, 1e-6)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"pooling": "cls", "max_length": 7},
        {"pooling": "max", "normalize": True},
        {"normalize": True},
    ],
    ids=str,
)
def test_what_we_save_the_library_reads_and_encodes_alike(cpu, tmp_path, settings):
    model = encoder(**settings)
    model.save_pretrained(tmp_path)
    theirs = cpu(tmp_path)
    assert theirs.max_seq_length == model.max_length
    found = torch.from_numpy(theirs.encode(SENTENCES, batch_size=3))
    assert_near(model.encode(SENTENCES), found, 1e-5)
    assert found.norm() > 1


@pytest.mark.parametrize(
    "settings", [{"pooling": "max"}, {"normalize": True, "max_length": 8}], ids=str
)
def test_what_the_library_saves_we_read_and_encode_alike(cpu, tmp_path, settings):
    encoder(**settings).save_pretrained(tmp_path / "ours")
    theirs = cpu(tmp_path / "ours")
    theirs.save(str(tmp_path / "theirs"))
    model = SentenceBert.from_pretrained(tmp_path / "theirs")
    found = torch.from_numpy(theirs.encode(SENTENCES))
    assert_near(model.encode(SENTENCES), found, 1e-5)


VECTORS = torch.randn(6, 3, 15, generator=torch.Generator().manual_seed(8))


@pytest.mark.parametrize(
    ("name", "options", "ours", "sentences", "labels"),
    [
        ("CosineSimilarityLoss", {}, CosineObjective(), 2, torch.linspace(0, 1, 6)),
        (
            "TripletLoss",
            {"triplet_margin": 4.0},
            TripletObjective(4.0),
            3,
            torch.zeros(6),
        ),
        (
            "MultipleNegativesRankingLoss",
            {"scale": 20.0},
            InBatchObjective(0.05),
            2,
            torch.zeros(6),
        ),
        (
            "MultipleNegativesRankingLoss",
            {"scale": 4.0},
            InBatchObjective(0.25),
            3,
            torch.zeros(6),
        ),
        (
            "MultipleNegativesSymmetricRankingLoss",
            {"scale": 20.0},
            InBatchObjective(both_ways=True),
            2,
            torch.zeros(6),
        ),
        (
            "SoftmaxLoss",
            {"num_labels": 4},
            SoftmaxObjective(15, 4),
            2,
            torch.tensor([0, 3, 1, 2, 2, 0]),
        ),
    ],
)
def test_a_loss_and_its_gradient_are_the_librarys(
    library, cpu, tmp_path, name, options, ours, sentences, labels
):
    encoder().save_pretrained(tmp_path)
    model = cpu(tmp_path)
    if name == "SoftmaxLoss":
        options = options | {"sentence_embedding_dimension": 15}
    loss = getattr(library.sentence_transformer.losses, name)(model, **options)
    if name == "SoftmaxLoss":
        loss.classifier.load_state_dict(ours.classifier.state_dict())
    mine, other = (VECTORS[:, :sentences].clone().requires_grad_() for _ in range(2))
    model.forward = lambda features, **kwargs: {
        "sentence_embedding": features["vectors"]
    }
    expected = loss([{"vectors": column} for column in other.unbind(1)], labels)
    found = ours(mine, labels).mean()
    assert_near(found, expected, 1e-6, 1e-6)
    found.backward()
    expected.backward()
    assert_near(mine.grad, other.grad, 1e-6, 1e-5)
    assert expected > 0.01


def test_search_and_closest_pairs_are_the_librarys(library):
    torch.manual_seed(3)
    queries, collection = torch.randn(5, 8), torch.randn(57, 8)
    hits = top_k(queries, collection, 4, block=13)
    for row, theirs in enumerate(
        library.util.semantic_search(queries, collection, top_k=4)
    ):
        assert [hit["corpus_id"] for hit in theirs] == hits.indices[row].tolist()
        assert [hit["score"] for hit in theirs] == pytest.approx(
            hits.scores[row].tolist(), abs=1e-6
        )
    pairs = closest_pairs(collection, k=9, block=11)
    mined = library.util.paraphrase_mining_embeddings(collection, top_k=57)[:9]
    assert [sorted(row[1:]) for row in mined] == pairs.indices.tolist()


@pytest.mark.real_data
def test_the_real_checkpoint_gives_the_librarys_vectors(cpu, real_data):
    """To 1e-5, on sentences of every length up to what is cut off."""
    folder = real_data.parent / "models" / "all-MiniLM-L6-v2"
    if not folder.is_dir():
        pytest.skip(f"no real checkpoint at {folder}")
    text = (
        "The old library near the river keeps maps, letters and naïve 東京 drawings of"
        " étudiants " * 30
    )
    texts = ["", "Hi!", *(text[: 17 * n * n] for n in range(1, 11))]
    model = SentenceBert.from_pretrained(folder)
    expected = torch.from_numpy(cpu(folder).float().encode(texts))
    assert_near(model.encode(texts, batch_size=5), expected, 1e-5)
