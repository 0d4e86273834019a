"""An encoder-decoder of gated recurrent units, with attention or without (chapter 1).

The two models differ in one thing only. With attention, each step of the decoder averages all encoder states anew
(Bahdanau et al. 2015; Luong et al. 2015). Without, each step is handed the same last encoder state: the bottleneck
(Sutskever et al. 2014; Cho et al. 2014). All other layers have the same shapes, so a comparison is of attention.

Dimension letters, everywhere in this module::

    B  sentences in a batch     S  source length     T  target length     V  words in the target vocabulary
    D  features of a hidden state

What this module does not do: no stacked layers, no copying of unknown words.
"""

from dataclasses import dataclass, replace
from typing import Literal, overload

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from course_lib.attention import attend
from course_lib.masking import padding_mask
from course_lib.scores import AdditiveScore, BilinearScore, DotScore

__all__ = ["Decoder", "DecoderState", "Encoder", "Seq2Seq", "Seq2SeqConfig"]


@dataclass(frozen=True)
class Seq2SeqConfig:
    """Sizes of a `Seq2Seq`.

    Parameters
    ----------
    source_vocab, target_vocab
        Number of different words on each side, special tokens included.
    embedding_dim
        Features of a word embedding.
    hidden_dim
        Features D of the decoder's state and of an encoder state; even, since the encoder's two directions share it.
    attention
        The score that compares a decoder state with an encoder state: "dot", "bilinear" or "additive"; None for no
        attention.
    dropout
        Share of features set to zero in training, on embeddings and before the output layer.
    input_feeding
        Whether each step of the decoder also reads what the step before gave to the output layer (Luong et al. 2015,
        section 3.3). A known target then runs word by word, and training takes longer.
    tie_output
        Whether the output layer's matrix is the target embedding (Press and Wolf 2017); needs `embedding_dim` equal to
        `hidden_dim`.

    Raises
    ------
    ValueError
        If a size cannot be used.

    Notes
    -----
    Chapter: seq2seq-attention

    Examples
    --------
    >>> Seq2SeqConfig(source_vocab=9, target_vocab=8, embedding_dim=4, hidden_dim=6).attention
    'dot'
    """

    source_vocab: int
    target_vocab: int
    embedding_dim: int = 128
    hidden_dim: int = 128
    attention: str | None = "dot"
    dropout: float = 0.0
    input_feeding: bool = False
    tie_output: bool = False

    def __post_init__(self) -> None:
        for name in ("source_vocab", "target_vocab", "embedding_dim", "hidden_dim"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.hidden_dim % 2:
            raise ValueError(
                f"hidden_dim is {self.hidden_dim}, but the encoder's two directions share it; "
                f"choose an even number, e.g. {self.hidden_dim + 1}"
            )
        if self.attention not in (None, "dot", "bilinear", "additive"):
            raise ValueError(f"attention is {self.attention!r}; choose 'dot', 'bilinear', 'additive' or None")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is {self.dropout}; it is a share, at least 0 and below 1")
        if self.tie_output and self.embedding_dim != self.hidden_dim:
            raise ValueError(
                f"tie_output shares one matrix between embedding_dim {self.embedding_dim} and hidden_dim "
                f"{self.hidden_dim}; make them equal"
            )


@dataclass
class DecoderState:
    """What the decoder carries from one step to the next; the first dimension of every tensor is the sentence.

    Parameters
    ----------
    hidden
        The recurrent state, ``(B, D)``.
    encoder_states
        One state for each source word, ``(B, S, D)``.
    source_mask
        True at source words, False at padding, ``(B, S)``.
    summary
        The last encoder state, ``(B, D)``: all that a decoder without attention sees of the source.
    combined
        What the last step gave to the output layer, ``(B, D)``; zeros at first. Input feeding reads it.

    Notes
    -----
    Chapter: seq2seq-attention

    Examples
    --------
    >>> mask, zeros = torch.ones(2, 3, dtype=torch.bool), torch.zeros(2, 4)
    >>> state = DecoderState(zeros, torch.zeros(2, 3, 4), mask, summary=zeros, combined=zeros)
    >>> state.encoder_states.shape
    torch.Size([2, 3, 4])
    """

    hidden: Tensor
    encoder_states: Tensor
    source_mask: Tensor
    summary: Tensor
    combined: Tensor


class Encoder(nn.Module):
    """Read the source in both directions and keep a state for each word (Bahdanau et al. 2015, section 3.2).

    Parameters
    ----------
    vocab_size, embedding_dim, hidden_dim
        As in `Seq2SeqConfig`; each direction has ``hidden_dim / 2`` features.
    dropout
        Share of embedding features set to zero in training.

    Notes
    -----
    Chapter: seq2seq-attention

    Examples
    --------
    >>> encoder = Encoder(vocab_size=9, embedding_dim=4, hidden_dim=6)
    >>> states, last = encoder(torch.tensor([[5, 7, 8], [5, 0, 0]]), torch.tensor([3, 1]))
    >>> states.shape, last.shape
    (torch.Size([2, 3, 6]), torch.Size([2, 6]))
    """

    def __init__(self, vocab_size: int, embedding_dim: int, hidden_dim: int, dropout: float = 0.0):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embedding_dim)
        self.dropout = nn.Dropout(dropout)
        self.gru = nn.GRU(embedding_dim, hidden_dim // 2, batch_first=True, bidirectional=True)

    def forward(
        self, source_ids: Int[Tensor, "B S"], source_lengths: Int[Tensor, "B"]
    ) -> tuple[Float[Tensor, "B S D"], Float[Tensor, "B D"]]:
        """Return the states (zeros at padding), and each direction's last state side by side."""
        embedded = self.dropout(self.embedding(source_ids))
        # Packing stops each direction at the sentence's own last word: padding cannot leak into a state.
        packed = pack_padded_sequence(embedded, source_lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, last = self.gru(packed)
        states, _ = pad_packed_sequence(states, batch_first=True, total_length=source_ids.shape[1])
        return states, last.transpose(0, 1).flatten(1)  # (2, B, D/2) -> (B, D)


class Decoder(nn.Module):
    """Write the target word by word, looking back at the encoder's states.

    Parameters
    ----------
    config
        The sizes, and the score that attention uses.

    Notes
    -----
    Luong et al. 2015, section 3: the context is joined to the state after the recurrent layer, so all steps of a known
    target run at once, unless input feeding makes each step wait for the one before.

    Chapter: seq2seq-attention

    Examples
    --------
    >>> decoder = Decoder(Seq2SeqConfig(source_vocab=9, target_vocab=8, embedding_dim=4, hidden_dim=6))
    >>> states, mask = torch.randn(1, 3, 6), torch.ones(1, 3, dtype=torch.bool)
    >>> start = DecoderState(torch.zeros(1, 6), states, mask, states[:, -1], combined=torch.zeros(1, 6))
    >>> logits, weights, end = decoder(torch.tensor([[1, 5]]), start)
    >>> logits.shape, weights.shape
    (torch.Size([1, 2, 8]), torch.Size([1, 2, 3]))
    """

    def __init__(self, config: Seq2SeqConfig):
        super().__init__()
        dim = config.hidden_dim
        self.embedding = nn.Embedding(config.target_vocab, config.embedding_dim)
        self.dropout = nn.Dropout(config.dropout)
        self.input_feeding = config.input_feeding
        self.gru = nn.GRU(config.embedding_dim + (dim if config.input_feeding else 0), dim, batch_first=True)
        self.score = _make_score(config)
        self.combine = nn.Linear(2 * dim, dim)
        self.output = nn.Linear(dim, config.target_vocab)
        if config.tie_output:
            self.output.weight = self.embedding.weight
            nn.init.normal_(self.embedding.weight, std=dim**-0.5)  # so that the first scores have variance near 1

    def forward(
        self, target_ids: Int[Tensor, "B T"], state: DecoderState
    ) -> tuple[Float[Tensor, "B T V"], Float[Tensor, "B T S"] | None, DecoderState]:
        """Return the logits of the next word after each target word, the attention weights (None without attention),
        and the state after the last word."""
        embedded = self.dropout(self.embedding(target_ids))
        combined, weights, state = (self._feed if self.input_feeding else self._run)(embedded, state)
        return self.output(self.dropout(combined)), weights, state

    def _run(self, inputs: Tensor, state: DecoderState) -> tuple[Tensor, Tensor | None, DecoderState]:
        """All steps at once, (B, T, inputs): what each gives to the output layer, its weights, and the last state."""
        hidden, last = self.gru(inputs, state.hidden[None])  # (B, T, D)
        if self.score is None:
            weights, context = None, state.summary[:, None].expand_as(hidden)  # (B, D) -> (B, T, D)
        else:
            scores = self.score(hidden, state.encoder_states)
            context, weights = attend(scores, state.encoder_states, state.source_mask[:, None])
        combined = self.combine(torch.cat([context, hidden], dim=-1)).tanh()  # Luong et al. 2015, equation 5
        return combined, weights, replace(state, hidden=last[0], combined=combined[:, -1])

    def _feed(self, embedded: Tensor, state: DecoderState) -> tuple[Tensor, Tensor | None, DecoderState]:
        """The same step by step: each reads the word and what the step before gave to the output layer."""
        outputs, rows = [], []
        for word in embedded.split(1, dim=1):
            combined, weights, state = self._run(torch.cat([word, state.combined[:, None]], dim=-1), state)
            outputs.append(combined)
            if weights is not None:
                rows.append(weights)
        return torch.cat(outputs, dim=1), torch.cat(rows, dim=1) if rows else None, state


def _make_score(config: Seq2SeqConfig) -> nn.Module | None:
    dim = config.hidden_dim
    match config.attention:
        case "dot":
            return DotScore()
        case "bilinear":
            return BilinearScore(dim, dim)
        case "additive":
            return AdditiveScore(dim, dim, dim)
    return None


class Seq2Seq(nn.Module):
    """Translate: an encoder, a decoder, and the bridge between them.

    Parameters
    ----------
    config
        The sizes.

    Notes
    -----
    `start` and `step` are what the searches of `course_lib.decoding` need.

    Chapter: seq2seq-attention

    Examples
    --------
    >>> model = Seq2Seq(Seq2SeqConfig(source_vocab=9, target_vocab=8, embedding_dim=4, hidden_dim=6))
    >>> source_ids, source_lengths = torch.tensor([[5, 7, 8], [5, 0, 0]]), torch.tensor([3, 1])
    >>> model(source_ids, source_lengths, target_ids=torch.tensor([[1, 6], [1, 7]])).shape
    torch.Size([2, 2, 8])
    """

    def __init__(self, config: Seq2SeqConfig):
        super().__init__()
        self.config = config
        self.encoder = Encoder(config.source_vocab, config.embedding_dim, config.hidden_dim, config.dropout)
        self.bridge = nn.Linear(config.hidden_dim, config.hidden_dim)
        self.decoder = Decoder(config)

    def start(self, source_ids: Int[Tensor, "B S"], source_lengths: Int[Tensor, "B"]) -> DecoderState:
        """Encode the source and return the decoder's first state.

        Parameters
        ----------
        source_ids
            Word ids, padded on the right with any id.
        source_lengths
            Number of words of each sentence, at least 1.

        Returns
        -------
        DecoderState
            The state before the first target word.

        Raises
        ------
        ValueError
            If a sentence is empty, or longer than the padded length.

        Notes
        -----
        The decoder starts from tanh(W · last encoder state) (Bahdanau et al. 2015, appendix A.2.2).
        """
        mask = padding_mask(source_lengths, max_length=source_ids.shape[1])
        states, last = self.encoder(source_ids, source_lengths)
        return DecoderState(self.bridge(last).tanh(), states, mask, last, combined=torch.zeros_like(last))

    def step(self, state: DecoderState, tokens: Int[Tensor, "B"]) -> tuple[Float[Tensor, "B V"], DecoderState]:
        """Read one target word for each sentence and score the next.

        Parameters
        ----------
        state
            From `start` or from the step before.
        tokens
            The word just written (``<bos>`` at first).

        Returns
        -------
        tuple of Tensor and DecoderState
            Log-probabilities of the next word, and the state after reading `tokens`.
        """
        logits, _, state = self.decoder(tokens[:, None], state)  # (B) -> (B, 1)
        return logits[:, 0].log_softmax(dim=-1), state

    @overload
    def forward(
        self, source_ids: Tensor, source_lengths: Tensor, target_ids: Tensor, return_weights: Literal[False] = False
    ) -> Tensor: ...
    @overload
    def forward(
        self, source_ids: Tensor, source_lengths: Tensor, target_ids: Tensor, return_weights: Literal[True]
    ) -> tuple[Tensor, Tensor | None]: ...
    def forward(
        self,
        source_ids: Int[Tensor, "B S"],
        source_lengths: Int[Tensor, "B"],
        target_ids: Int[Tensor, "B T"],
        return_weights: bool = False,
    ) -> Float[Tensor, "B T V"] | tuple[Float[Tensor, "B T V"], Float[Tensor, "B T S"] | None]:
        """Score a known target: teacher forcing (Williams and Zipser 1989).

        Parameters
        ----------
        source_ids, source_lengths
            The padded source and its lengths.
        target_ids
            The target, shifted: it begins with ``<bos>`` and lacks the last token. Position t predicts token t + 1.
        return_weights
            Whether to return the attention weights too. Row t belongs to the word that position t predicts.

        Returns
        -------
        Tensor or tuple
            Logits, or logits and weights (None if the model has no attention).

        Raises
        ------
        ValueError
            If a source sentence is empty.
        """
        logits, weights, _ = self.decoder(target_ids, self.start(source_ids, source_lengths))
        return (logits, weights) if return_weights else logits
