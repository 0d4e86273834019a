"""All claims, in the order of the chapters; those of a chapter that the book does not
have yet are left out."""

from pathlib import Path

from course_tools.claims import (
    claims_bert,
    claims_embeddings,
    claims_family,
    claims_finetuning,
    claims_pretraining,
    claims_sentence_bert,
    claims_seq2seq,
    claims_transformer,
    claims_wordpiece,
)
from course_tools.claims.claim import Claim
from course_tools.claims.rows import ROWS, chapter_pages

#: Who states claims; a chapter's own file enters here.
#:
#: :meta hide-value:
MODULES = (
    claims_seq2seq,
    claims_transformer,
    claims_wordpiece,
    claims_bert,
    claims_pretraining,
    claims_embeddings,
    claims_finetuning,
    claims_sentence_bert,
    claims_family,
)

CLAIMS: tuple[Claim, ...] = tuple(
    claim for module in MODULES for claim in module.CLAIMS
)


def chapter_of(claim: Claim) -> int:
    """Return the number of the chapter whose row a claim belongs to."""
    return ROWS[claim.row - 1].chapter


def claims_of(book: Path) -> list[Claim]:
    """Return the claims of the chapters that a book has."""
    pages = chapter_pages(book)
    return [claim for claim in CLAIMS if chapter_of(claim) in pages]
