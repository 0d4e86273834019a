"""Masking: who is chosen, what becomes of it, and what the labels say (Devlin et al.
2019, section 3.1)."""

import pytest
import torch
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chisquare

from course_lib.pretraining.masking import (
    IGNORE,
    OTHERS,
    MaskingConfig,
    VocabIds,
    choose_positions,
    corrupt,
    mask_tokens,
    random_spans,
)
from course_lib.wordpiece.training import SPECIAL_TOKENS

PAD, UNK, CLS, SEP, MASK = range(5)
VOCAB = VocabIds(
    mask_id=MASK,
    size=23,
    special_ids=(PAD, UNK, CLS, SEP, MASK),
    continuation_ids=tuple(range(17, 23)),
)
EIGHTY_TEN_TEN = (0.8, 0.1, 0.1)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def rows(batch: int, width: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """[CLS] tokens [SEP] and padding of several lengths, with where the special ones
    are."""
    ids = torch.randint(5, VOCAB.size, (batch, width), generator=seeded(seed))
    lengths = torch.randint(3, width + 1, (batch, 1), generator=seeded(seed + 1))
    places = torch.arange(width)
    ids = torch.where(
        places < lengths - 1, ids, torch.where(places == lengths - 1, SEP, PAD)
    )
    ids[:, 0] = CLS
    return ids, (places == 0) | (places >= lengths - 1)


def assert_share(count: int, of: int, share: float) -> None:
    """A count must lie where all but one in a million binomial counts lie."""
    low, high = binom.interval(1 - 1e-6, of, share)
    assert low <= count <= high, (
        f"{count} of {of} is {count / of:.4f}; expected {share}"
        f" ({low / of:.4f}-{high / of:.4f})"
    )


class TestWorkedExample:
    """x = (21, 11987, 5438) with [MASK] = 50001: the first and the third are hidden
    (Phuong and Hutter 2022)."""

    x = torch.tensor([[21, 11987, 5438]])
    chosen = torch.tensor([[True, False, True]])

    def test_masked_kept_and_masked(self):
        masked_ids, labels = corrupt(
            self.x,
            self.chosen,
            torch.zeros(1, 3),
            torch.full((1, 3), 77),
            mask_id=50001,
        )
        assert masked_ids.tolist() == [[50001, 11987, 50001]]
        assert labels.tolist() == [[21, IGNORE, 5438]]

    @for_each(
        ("fate", "becomes"),
        [
            (0.0, 50001),
            (0.7999, 50001),
            (0.8, 77),
            (0.8999, 77),
            (0.9, 11987),
            (0.9999, 11987),
        ],
    )
    def test_one_number_decides_between_mask_random_token_and_original(
        self, fate, becomes
    ):
        everywhere = torch.ones(1, 3, dtype=torch.bool)
        fates = torch.full((1, 3), fate, dtype=torch.float64)
        masked_ids, labels = corrupt(
            self.x, everywhere, fates, torch.full((1, 3), 77), mask_id=50001
        )
        assert masked_ids[0, 1] == becomes
        assert labels.equal(self.x), (
            "the label is the original, whatever the model reads"
        )

    def test_no_draw_changes_what_is_not_chosen(self):
        for fate in (0.1, 0.85, 0.95):
            masked_ids, _ = corrupt(
                self.x,
                self.chosen,
                torch.full((1, 3), fate),
                torch.full((1, 3), 77),
                50001,
            )
            assert masked_ids[0, 1] == 11987


class TestChoice:
    def test_below_the_rate_is_chosen_and_of_each_sequence_at_least_the_lowest(self):
        eligible = torch.tensor(
            [[0, 1, 1, 1, 1], [0, 1, 1, 1, 0], [0, 0, 0, 0, 0]]
        ).bool()
        draws = torch.tensor(
            [
                [0.0, 0.149, 0.15, 0.9, 0.1],
                [0.0, 0.7, 0.4, 0.5, 0.1],
                [0.0, 0.1, 0.2, 0.3, 0.4],
            ]
        )
        chosen = choose_positions(eligible, 0.15, draws)
        assert chosen.int().tolist() == [
            [0, 1, 0, 0, 1],
            [0, 0, 1, 0, 0],
            [0, 0, 0, 0, 0],
        ]

    def test_a_unit_is_chosen_as_a_whole_by_its_first_draw(self):
        eligible = torch.ones(1, 6, dtype=torch.bool)
        units = torch.tensor([[4, 4, 7, 7, 7, 4]])
        draws = torch.tensor([[0.9, 0.01, 0.1, 0.9, 0.9, 0.8]])
        assert choose_positions(eligible, 0.15, draws, units).int().tolist() == [
            [0, 0, 1, 1, 1, 0]
        ]

    def test_a_sequence_with_no_draw_below_the_rate_gives_a_whole_unit(self):
        eligible = torch.tensor([[False, True, True, True, True, False]])
        units = torch.tensor([[0, 1, 1, 2, 2, 3]])
        draws = torch.tensor([[0.0, 0.9, 0.2, 0.5, 0.9, 0.0]])
        assert choose_positions(eligible, 0.15, draws, units).int().tolist() == [
            [0, 0, 0, 1, 1, 0]
        ]

    def test_a_special_token_within_a_unit_cuts_it(self):
        eligible = torch.tensor([[True, False, True, True]])
        units = torch.zeros(1, 4, dtype=torch.long)
        draws = torch.tensor([[0.1, 0.9, 0.9, 0.1]])
        assert choose_positions(eligible, 0.15, draws, units).int().tolist() == [
            [1, 0, 0, 0]
        ]


class TestStatistics:
    @for_each(
        ("config", "shares"),
        [
            (MaskingConfig(), EIGHTY_TEN_TEN),
            (
                MaskingConfig(rate=0.4, mask_share=1.0, random_share=0.0),
                (1.0, 0.0, 0.0),
            ),
            (
                MaskingConfig(rate=0.3, mask_share=0.25, random_share=0.35),
                (0.25, 0.35, 0.4),
            ),
            (MaskingConfig(unit="word"), EIGHTY_TEN_TEN),
        ],
    )
    def test_the_rate_of_all_is_chosen_and_of_the_chosen_the_stated_shares(
        self, config, shares
    ):
        """Of 800,000 tokens; drawing twice, so that the second draw gets what the first
        left over, gives 80/2/18."""
        ids = torch.randint(5, VOCAB.size, (1000, 800), generator=seeded(2))
        special = torch.zeros_like(ids, dtype=torch.bool)
        masked_ids, labels = mask_tokens(ids, special, seeded(3), VOCAB, config)
        chosen = labels != IGNORE
        if config.unit == "token":
            assert_share(int(chosen.sum()), ids.numel(), config.rate)
        else:  # words are drawn, and there are fewer of them
            word = VOCAB.word_ids(ids)
            first = torch.ones_like(chosen)
            first[:, 1:] = word[:, 1:] != word[:, :-1]
            assert_share(int((chosen & first).sum()), int(first.sum()), config.rate)
        mask_share, random_share, kept_share = shares
        # a random token is the original once in a while
        count, same = (int(chosen.sum()), 1 / len(VOCAB.ordinary))
        assert_share(int((masked_ids[chosen] == MASK).sum()), count, mask_share)
        assert_share(
            int((masked_ids == ids)[chosen].sum()),
            count,
            kept_share + random_share * same,
        )
        replaced = chosen & (masked_ids != MASK) & (masked_ids != ids)
        assert_share(int(replaced.sum()), count, random_share * (1 - same))

    def test_a_random_token_is_any_but_a_special_one_with_equal_chance(self):
        ids = torch.full((400, 500), 9)
        special = torch.zeros(400, 500, dtype=torch.bool)
        config = MaskingConfig(rate=1.0, mask_share=0.0, random_share=1.0)
        masked_ids, _ = mask_tokens(ids, special, seeded(5), VOCAB, config)
        counts = masked_ids.flatten().bincount(minlength=VOCAB.size)
        assert counts[:5].tolist() == [0, 0, 0, 0, 0]
        assert chisquare(counts[5:].numpy()).pvalue > 1e-4

    def test_every_position_has_the_same_chance(self):
        ids, special = rows(6000, 17, seed=7)
        _, labels = mask_tokens(ids, special, seeded(8), VOCAB, MaskingConfig(rate=0.5))
        for place in range(1, 16):
            eligible = ~special[:, place]
            # Rows of few tokens get one for certain; leave them out, so that the rate
            # is exact.
            eligible &= (~special).sum(dim=1) > 12
            assert_share(
                int((labels[eligible, place] != IGNORE).sum()), int(eligible.sum()), 0.5
            )

    def test_spans_of_words_have_a_geometric_length(self):
        words = torch.arange(4000).repeat(30, 1)
        lengths = torch.cat(
            [row.bincount()[:-1] for row in random_spans(words, 3.8, seeded(4))]
        )
        for length in range(1, 8):
            share = (1 / 3.8) * (1 - 1 / 3.8) ** (length - 1)
            assert_share(int((lengths == length).sum()), len(lengths), share)


class TestProperties:
    @given(
        batch=st.integers(1, 5),
        width=st.integers(3, 19),
        seed=st.integers(0, 2**32 - 1),
        rate=st.floats(0.01, 1.0),
        unit=st.sampled_from(["token", "word", "span"]),
    )
    @settings(deadline=None)
    def test_only_text_is_chosen_at_least_once_and_the_rest_is_left(
        self, batch, width, seed, rate, unit
    ):
        ids, special = rows(batch, width, seed % 1000)
        ids[torch.rand(ids.shape, generator=seeded(seed)) < 0.1] = (
            UNK  # special tokens that the text holds
        )
        # and tokens that the caller protects
        special |= torch.rand(ids.shape, generator=seeded(seed + 1)) < 0.1
        before = ids.clone()
        masked_ids, labels = mask_tokens(
            ids, special, seeded(seed), VOCAB, MaskingConfig(rate=rate, unit=unit)
        )
        chosen = labels != IGNORE
        assert ids.equal(before), "the input is not changed in place"
        eligible = ~special & (ids > MASK)
        assert not (chosen & ~eligible).any(), "never a special token, never padding"
        assert (chosen.any(dim=1) == eligible.any(dim=1)).all(), (
            "at least one where there is one"
        )
        assert labels[chosen].equal(before[chosen])
        assert masked_ids[~chosen].equal(before[~chosen])
        assert (
            (masked_ids[chosen] >= MASK) & (masked_ids[chosen] < VOCAB.size)
        ).all(), "[MASK] or an ordinary token"
        if unit == "word":
            continues = (ids[:, 1:] >= 17) & eligible[:, 1:] & eligible[:, :-1]
            assert (chosen[:, 1:] == chosen[:, :-1])[continues].all(), (
                "all pieces of a word, or none"
            )

    @given(seed=st.integers(0, 2**31))
    @settings(deadline=None, max_examples=20)
    def test_the_generator_decides_all_draws(self, seed):
        ids, special = rows(3, 40)
        one, same = (mask_tokens(ids, special, seeded(seed), VOCAB) for _ in range(2))
        assert one[0].equal(same[0])
        assert one[1].equal(same[1])
        assert not one[1].equal(mask_tokens(ids, special, seeded(seed + 1), VOCAB)[1])

    def test_without_a_generator_torchs_own_is_used(self):
        ids, special = rows(3, 40)
        torch.manual_seed(5)
        one = mask_tokens(ids, special, None, VOCAB)[1]
        torch.manual_seed(5)
        assert one.equal(mask_tokens(ids, special, None, VOCAB)[1])


class TestUnits:
    # one word, a name of three, one word, a name of two
    NAMES = torch.tensor([[-1, 0, 1, 1, 1, 2, 3, 3, -1]] * 3000)

    def drawn(self, unit):
        ids, special = torch.full(self.NAMES.shape, 9), self.NAMES < 0
        return mask_tokens(
            ids,
            special,
            seeded(1),
            VOCAB,
            MaskingConfig(rate=0.5, unit=unit),
            self.NAMES,
        )

    @pytest.mark.parametrize("unit", ["word", "span"])
    def test_given_units_are_chosen_whole_each_at_the_rate(self, unit):
        chosen = self.drawn(unit)[1] != IGNORE
        for first, places in {1: (1,), 2: (2, 3, 4), 5: (5,), 6: (6, 7)}.items():
            assert all(chosen[:, place].equal(chosen[:, first]) for place in places)
            # A row gets one for certain where all four draws miss: 1 in 16 rows, each
            # unit in a quarter of them.
            assert_share(int(chosen[:, first].sum()), 3000, 0.5 + 0.5**4 / 4)

    def test_pieces_of_a_word_have_fates_of_their_own_and_a_span_has_one(self):
        """Devlin et al., release of May 2019: pieces are still decided one by one; Sun
        et al. 2019: a name is not."""
        for unit, differ in (("word", True), ("span", False)):
            masked_ids, labels = self.drawn(unit)
            of_name = labels[:, 2] != IGNORE
            masked = masked_ids[of_name][:, 2:5] == MASK
            assert bool((masked.any(dim=1) != masked.all(dim=1)).any()) is differ
            assert_share(int(masked[:, 0].sum()), len(masked), 0.8)

    def test_words_are_told_by_their_pieces(self):
        vocab = VocabIds.of(
            {
                token: i
                for i, token in enumerate(
                    [*SPECIAL_TOKENS, "un", "##aff", "##able", "a"]
                )
            }
        )
        words = vocab.word_ids(torch.tensor([[CLS, 5, 6, 7, 8, 5, 7, SEP]]))
        assert words.tolist() == [[0, 1, 1, 1, 2, 3, 3, 4]]

    def test_preferred_words_are_hidden_at_the_full_rate_and_others_at_a_twentieth(
        self,
    ):
        tokens = {
            token: i
            for i, token in enumerate([*SPECIAL_TOKENS, "ada", "went", "lamp", "the"])
        }
        ids = torch.tensor([[CLS, *[5, 6, 8, 7, 6] * 40, SEP]]).repeat(120, 1)
        special = (ids == CLS) | (ids == SEP)
        vocab = VocabIds.of(tokens, ("ada", "lamp"))
        _, labels = mask_tokens(ids, special, seeded(2), vocab, MaskingConfig(rate=0.4))
        preferred = (ids == tokens["ada"]) | (ids == tokens["lamp"])
        assert_share(
            int((labels[preferred] != IGNORE).sum()), int(preferred.sum()), 0.4
        )
        others = ~preferred & ~special
        assert_share(
            int((labels[others] != IGNORE).sum()), int(others.sum()), 0.4 * OTHERS
        )

    def test_a_word_is_chosen_by_the_rate_of_its_first_piece(self):
        tokens = {
            token: i
            for i, token in enumerate([*SPECIAL_TOKENS, "un", "##aff", "##able", "a"])
        }
        ids = torch.tensor([[CLS, *[5, 6, 7, 8] * 40, SEP]]).repeat(120, 1)
        special = (ids == CLS) | (ids == SEP)
        config = MaskingConfig(rate=0.4, unit="word")
        _, labels = mask_tokens(
            ids, special, seeded(2), VocabIds.of(tokens, ("un",)), config
        )
        chosen = (labels[:, 1:-1] != IGNORE).reshape(120, 40, 4)
        assert chosen[..., 0].equal(chosen[..., 2])
        assert_share(int(chosen[..., 1].sum()), 120 * 40, 0.4)
        assert_share(int(chosen[..., 3].sum()), 120 * 40, 0.4 * OTHERS)

    @given(seed=st.integers(0, 10**6), mean=st.floats(1, 20))
    @settings(deadline=None, max_examples=30)
    def test_a_span_holds_whole_words_and_spans_follow_one_another(self, seed, mean):
        ids = torch.randint(5, VOCAB.size, (4, 31), generator=seeded(seed))
        words = VOCAB.word_ids(ids)
        spans = random_spans(words, mean, seeded(seed))
        steps = spans[:, 1:] - spans[:, :-1]
        assert (spans[:, 0] == 0).all()
        assert ((steps == 0) | (steps == 1)).all()
        assert not steps[words[:, 1:] == words[:, :-1]].any()


@for_each(
    ("call", "words"),
    [
        (
            lambda: MaskingConfig(rate=15.0),
            "rate is 15.0; it is a share, so choose a number from 0 to 1",
        ),
        (
            lambda: MaskingConfig(rate=0.0),
            "rate is 0, so there would be nothing to guess",
        ),
        (
            lambda: MaskingConfig(mask_share=0.8, random_share=0.3),
            "must not exceed 1 together",
        ),
        (
            lambda: MaskingConfig(unit="letter"),
            "unit is 'letter'; choose one of token, word, span",
        ),
        (
            lambda: MaskingConfig(mean_span_length=0.5),
            "mean_span_length is 0.5; a span has at least 1 word",
        ),
        (
            lambda: VocabIds(mask_id=9, size=9),
            "id 9 is not in a vocabulary of 9; ids run from 0 to 8",
        ),
        (
            lambda: VocabIds(mask_id=1, size=2, special_ids=(0,)),
            "all 2 tokens of the vocabulary are special",
        ),
        (lambda: VocabIds.of({"a": 0}), r"the vocabulary lacks \[MASK\]"),
        (lambda: VocabIds.of({"[MASK]": 0, "a": 1}, ("b",)), "the vocabulary lacks b"),
        (
            lambda: VocabIds(4, 9).word_ids(torch.ones(1, 2, dtype=torch.long)),
            "make VocabIds with VocabIds.of",
        ),
        (
            lambda: mask_tokens(
                *rows(1, 5), None, VOCAB, word_ids=torch.zeros(1, 5, dtype=torch.long)
            ),
            (
                "word_ids are given, but single tokens are chosen; set unit='word' or"
                " unit='span'"
            ),
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()
