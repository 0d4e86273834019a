"""Chapter 9's diagrams: what they say is what the library computes; and the common part
that one of them draws."""

from xml.etree import ElementTree

import pytest
import torch
import torch.nn.functional as F
from sentence_peer import encoder

from course_lab.ch09_sentence_bert import common_part, drawings
from course_lib.sentence_bert.evaluation import sts_score

tensor = torch.tensor
VECTORS = {"q": tensor([1.0, 0]), "x": tensor([3.0, 0]), "y": tensor([1.0, 1])}


def words(diagram):
    """All text of a drawing; XML that does not parse is an error."""
    tree = ElementTree.fromstring(diagram.svg())
    texts = tree.iter("{http://www.w3.org/2000/svg}text")
    return ["".join(text.itertext()) for text in texts]


def test_both_encoders_have_the_tokens_and_the_size_of_their_model():
    model = encoder()
    found = words(drawings.two_encoders(model, "good film", "a bad film"))
    tokens = [text for text in found if text.endswith("tokens")]
    assert tokens == ["8 tokens", "4 tokens", "5 tokens"]
    assert found.count(str(model.hidden_size)) == 2
    assert "49,995,000 inputs" in found
    assert "10,000 inputs" in found


def test_pooling_shows_the_states_and_what_pool_makes_of_them():
    states = tensor([[[1.0, 8], [3, 4], [99, 99]]])
    mask = tensor([[True, True, False]])
    found = words(drawings.pooling(["a", "b", "[PAD]"], states, mask))
    numbers = [text for text in found if text.isdigit()]
    assert " ".join(numbers) == "1 8 1 3 4 1 99 99 0 2 6 1 8 3 8"


def test_a_common_part_changes_which_cosine_is_the_larger():
    found = words(drawings.common_part(VECTORS, tensor([0.0, 4])))
    cosines = [text.split(" = ")[1] for text in found if text.startswith("cos")]
    assert cosines == ["1.00", "0.71", "0.92", "1.00"]


def test_the_siamese_network_has_the_features_and_the_cosine_of_its_vectors():
    def drawn(here=None):
        u, v = tensor([3.0, 4]), tensor([4.0, 3])
        return drawings.siamese("a", "b", u, v, here)

    found = [text for text in words(drawn()) if text.replace(".", "").isdigit()]
    assert " ".join(found) == "3 4 4 3 3 4 4 3 1 1 0.96"
    for part in drawings.PARTS:
        assert drawn(part).svg().count('class="faded"') == len(drawings.PARTS) - 1
    with pytest.raises(ValueError, match="no part"):
        drawn("decoder").svg()


def test_the_batch_shows_cosines_their_softmax_and_the_losses_by_hand():
    q, d = tensor([[1.0, 0], [0, 2]]), tensor([[0.6, 0.8], [0, 1]])
    found = words(drawings.in_batch(["a", "b"], q, d, 0.2))
    numbers = [text for text in found if text.replace(".", "").isdigit()]
    # e^3 / (e^3 + 1) = 0.95; e^5 / (e^4 + e^5) = 0.73; the diagonal comes last
    assert " ".join(numbers[:4]) == "0.00 0.80 0.60 1.00"
    assert " ".join(numbers[4:]) == "0.05 0.27 0.95 0.73 0.05 0.31"


def test_the_second_stage_reads_the_candidates():
    found = words(drawings.two_stages(5_000, 7))
    assert {"5,000 vectors", "7", "7 pairs read"} < set(found)


def test_generated_pairs_have_the_cosines_and_lengths_that_they_should():
    for vary in (False, True):
        u, v, similarity, common = common_part.generated_pairs(vary, 0, 500, 16)
        noise = F.cosine_similarity(u, v) - similarity
        assert 0.05 < noise.std() < 0.1
        assert common.norm() == pytest.approx(1, abs=1e-5)
        lengths = u.norm(dim=1)
        assert lengths.max() / lengths.min() < (4.001 if vary else 1.001)
        assert sts_score(u, v, similarity.tolist()) > 0.9


def test_whitened_vectors_have_mean_0_and_equal_variance_in_all_directions():
    torch.manual_seed(0)
    documents = torch.randn(50, 4) * tensor([1.0, 5, 0.2, 3]) + 7
    documents = torch.cat([documents, documents[:, :1]], 1)  # a direction without any
    queries, white = common_part.whitened(documents[:3], documents)
    torch.testing.assert_close(white.T @ white / 49, torch.eye(4), rtol=0, atol=1e-4)
    torch.testing.assert_close(queries, white[:3])
