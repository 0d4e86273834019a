"""WordPiece for work: the interface of `wordpiece.WordPiece` on the library
`tokenizers`: compiled, parallel.

Use this for corpora and training runs, `WordPiece` to see what happens. Ids, strings
and offsets are the same.
"""

from collections.abc import Iterable, Sequence
from dataclasses import fields

from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from tokenizers import Encoding as LibraryEncoding

from course_lib.wordpiece.files import Settings
from course_lib.wordpiece.normalize import check_text
from course_lib.wordpiece.tokenizer import (
    CLS,
    PAD,
    SEP,
    UNK,
    Encoding,
    Padding,
    Text,
    Vocabulary,
    check_room,
)
from course_lib.wordpiece.training import PREFIX, SPECIAL_TOKENS


class FastWordPiece(Vocabulary):
    """A WordPiece tokenizer that is fast; parameters, methods and errors are those of
    `course_lib.wordpiece.tokenizer.WordPiece`.

    Parameters
    ----------
    vocab
        The pieces in the order of their ids.
    lowercase, strip, max_word_length
        As in `WordPiece`.

    Raises
    ------
    ValueError
        If the vocabulary has a piece twice, an empty one, or no [UNK].

    Examples
    --------
    >>> tokenizer = FastWordPiece([*SPECIAL_TOKENS, "we", "em", "##bed", "##s", "."])
    >>> tokenizer.encode("We embeds.").tokens
    ['[CLS]', 'we', 'em', '##bed', '##s', '.', '[SEP]']
    """

    def __init__(
        self,
        vocab: Sequence[str],
        lowercase: bool = True,
        strip: bool | None = None,
        max_word_length: int = 100,
    ) -> None:
        super().__init__(vocab, lowercase, strip, max_word_length)
        model = models.WordPiece(
            self.vocab,
            unk_token=UNK,
            max_input_chars_per_word=max_word_length,
            continuing_subword_prefix=PREFIX,
        )
        self.tokenizer = _around(model, self.settings)
        self.tokenizer.add_special_tokens(
            [_special(token) for token in SPECIAL_TOKENS if token in self.vocab]
        )
        if CLS in self.vocab and SEP in self.vocab:
            self.tokenizer.post_processor = processors.BertProcessing(
                (SEP, self.vocab[SEP]), (CLS, self.vocab[CLS])
            )

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocab_size: int,
        min_frequency: int = 1,
        limit_alphabet: int | None = None,
        lowercase: bool = True,
        strip: bool | None = None,
    ) -> "FastWordPiece":
        """Learn a vocabulary with the library's trainer, which is named after WordPiece
        and merges by frequency.

        Parameters
        ----------
        texts
            Lines, paragraphs or documents.
        vocab_size, min_frequency, limit_alphabet
            As in `course_lib.wordpiece.training.train_wordpiece`; but a character
            beyond the limit is left out of its words, not the words.
        lowercase, strip
            As in `WordPiece`.

        Returns
        -------
        FastWordPiece
            The tokenizer.

        Notes
        -----
        The library's ``WordPieceTrainer`` calls its ``BpeTrainer``.
        """
        settings = Settings(lowercase, strip)
        tokenizer = _around(models.WordPiece(unk_token=UNK), settings)
        trainer = trainers.WordPieceTrainer(
            vocab_size=vocab_size,
            min_frequency=min_frequency,
            special_tokens=list(SPECIAL_TOKENS),
            continuing_subword_prefix=PREFIX,
            show_progress=False,
        )
        if limit_alphabet is not None:
            trainer.limit_alphabet = limit_alphabet
        tokenizer.train_from_iterator(texts, trainer)
        vocab = tokenizer.get_vocab()
        return cls(sorted(vocab, key=vocab.__getitem__), lowercase, strip)

    def encode_word(self, word: str) -> list[str]:
        """Cut one normalised word into pieces."""
        check_text(word)
        return [token.value for token in self.tokenizer.model.tokenize(word)]

    def encode(
        self,
        text: str,
        pair: str | None = None,
        max_length: int | None = None,
        add_special_tokens: bool = True,
    ) -> Encoding:
        """Encode a text, or two as a pair; see `WordPiece.encode`."""
        return self.encode_batch(
            [text if pair is None else (text, pair)],
            None,
            max_length,
            add_special_tokens,
        )[0]

    def encode_batch(
        self,
        texts: Iterable[Text],
        padding: Padding = "longest",
        max_length: int | None = None,
        add_special_tokens: bool = True,
    ) -> list[Encoding]:
        """Encode texts or pairs in parallel and make them equally long; see
        `WordPiece.encode_batch`."""
        encodings = self.encode_in_rust(
            list(texts), padding, max_length, add_special_tokens
        )
        names = [column.name for column in fields(Encoding)]
        return [Encoding(*(getattr(x, name) for name in names)) for x in encodings]

    def encode_in_rust(
        self,
        texts: list[Text],
        padding: Padding = None,
        max_length: int | None = None,
        add_special_tokens: bool = True,
    ) -> list[LibraryEncoding]:
        """Encode as `encode_batch`, and leave the result where it is: the library's
        objects, for long corpora."""
        for text in texts:
            for part in [text] if isinstance(text, str) else text:
                check_text(part)
        for token in (CLS, SEP) if add_special_tokens else ():
            self.special(token)
        longest = 3 if any(not isinstance(text, str) for text in texts) else 2
        check_room(max_length, longest if add_special_tokens else 0)
        if max_length is None:
            self.tokenizer.no_truncation()
        else:
            # of both texts the longer first, as `truncate`
            self.tokenizer.enable_truncation(max_length)
        if padding is None:
            self.tokenizer.no_padding()
        else:
            length = None if padding == "longest" else padding
            self.tokenizer.enable_padding(
                pad_id=self.special(PAD).id, pad_token=PAD, length=length
            )
        return self.tokenizer.encode_batch(texts, add_special_tokens=add_special_tokens)

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        """Write ids as text; see `WordPiece.decode`."""
        ids = list(ids)
        self.pieces_of(ids)  # refuses one that is none
        return self.tokenizer.decode(ids, skip_special_tokens=skip_special_tokens)


def _around(model: models.WordPiece, settings: Settings) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(
        strip_accents=settings.strip, lowercase=settings.lowercase
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix=PREFIX)
    return tokenizer


def _special(token: str) -> AddedToken:
    return AddedToken(token, special=True, normalized=False)
