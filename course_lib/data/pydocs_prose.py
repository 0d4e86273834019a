"""From a paragraph with markup to plain prose, or to nothing where it is not prose.

The rules are few and each has a reason that one can read; they were written by reading
samples, and a reader's verdicts on a sample that no rule has seen are in the data card
(:mod:`course_lib.data.readings`).
"""

import re

SHORTEST = 5  # words: below, a paragraph is a label more often than a sentence
LONG_ENOUGH = 8  # words: from here on, what does not end as a sentence does may be one
# words: from here on, most paragraphs in which no main verb is found have an unknown
# one
LABEL_SHORTER_THAN = 20

# Words that English needs to make a sentence of other words. Code, lists of names and
# tables have hardly any.
_FUNCTION_WORDS = """
a an the this that these those its it they them their which who whose what where when while if then than as of in on at
to by for from with without into onto over under between within through during before after about against and or but
nor not no is are was were be been being has have had do does did can cannot could may might must shall should will
would there here all any each every both either some such only also same other more most one two so because you your
we our us i how whether until since via per up out
"""  # noqa: E501
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())

_SIMPLE_MATH = re.compile(r"[A-Za-z0-9+\-, =<>/()\[\].']{1,24}")
_GREEK = re.compile(
    r"\\(alpha|beta|gamma|delta|epsilon|eta|theta|kappa|lambda|mu|nu|pi|rho|sigma|tau|phi|chi|psi|omega)(?![a-z])",
    re.I,
)
_WORD = re.compile(
    r"[\"'(“‘]*[A-Za-zÀ-ɏ]+(?:['’-][A-Za-zÀ-ɏ]+)*['’]?[\"')”’]*[.,;:!?]*[\"')”]*"
)
_NOT_PROSE = re.compile(
    r">>>|\]_| [.,;](?: |$)|[.!?] :$|"
    r"https?://|www\.|%\(|::=|\{[\w.]*\}|\{\{|\$\$|\\[a-zA-Z]|==|!=|->|=>|&&|\|\||</|/>|:math:|"
    r" {3,}|@\w|"
    r"\b(?:TODO|FIXME|XXX)\b|\bsphx_glr_|\w = \w|\b(?:et"
    r" al\.|pp\.|vol\.|doi)\b|[^\x00-\u024f\u2000-\u206f]",
    re.IGNORECASE,
)
# A short paragraph is a label unless each of its sentences has a main verb: one of
# these words, or a verb of documentation where only a main verb can stand. "Abstract
# base class for visitors." against "Sort them by name."
_FINITE = frozenset(
    (
        *(
            "is",
            "are",
            "was",
            "were",
            "has",
            "have",
            "had",
            "do",
            "does",
            "did",
            "can",
            "cannot",
            "could",
            "may",
        ),
        *("might", "must", "shall", "should", "will", "would", "means", "needs"),
    )
)
# What makes no sentence: a subordinate clause with its verb, or all of it where none of
# these words is in it. "Lexer that is used for tests", "Raised when a file is missing"
# against "A header that is too long is cut".
_SUBORDINATE = re.compile(
    r"\s\(?(?:that|which|who|if|when|where|while|because|whether|until)\b(?:[^,.;:]|[.:](?=\S))*?"
    rf"(?:(?:\s(?:{'|'.join(sorted(_FINITE))}|not|be|been)\b)+(?:\s[\w-]+)?|(?=[,.;:])|$)"
)
# Not the full stops of "e.g. a name" and "W. Kahan".
_BETWEEN_SENTENCES = re.compile(
    r"(?<=\w\w[.!?]) (?=[\"'(“]?[A-Z])|(?<=\w\w[.!?][)\"'”’]) (?=[\"'(“]?[A-Z])"
)
_DETERMINERS = frozenset(
    ("a", "all", "an", "any", "each", "it", "its", "no", "the", "them", "this")
)
_VERBS = """
abort accept access accumulate acquire activate adapt add adjust advance align allocate allow annotate append apply
approximate arrange ask assemble assert assign associate assume attach attempt avoid await backpropagate balance begin
bind blend break bring broadcast build bump bundle byte-compile calculate call cancel canonicalize capture cast catch
change check choose chop clamp classify clean clear clip clone close coerce collapse collate collect color combine
compare compile complete compose compress compute concatenate configure confirm conform connect consider constrain
construct consume contain continue contract control convert convolve copy count create cut deactivate debug decide
declare decode decompose decompress decorate decrement decrypt deduce define delegate delete demonstrate denote depend
deregister derive describe deserialize destroy detach detect determine differentiate disable disallow discard
discretize dispatch display distribute divide do download draw drop dump duplicate edit elaborate eliminate emit
enable encapsulate encode encrypt end enforce ensure enter enumerate erase escape establish estimate evaluate examine
exchange exclude execute exit expand expect export express extend extract factor fail fetch figure fill filter
finalize find finish fire fit fix flag flatten flip flush fold follow force form format forward free freeze fuse
gather generate get give go grab group guarantee guard guess handle hash help hide highlight hint hold hook identify
ignore implement import improve include increase increment index indicate infer inform inherit initialise initialize
inject inline insert inspect install instantiate integrate intercept interpolate interpret intersect invalidate invert
invoke isolate iterate join keep kill know launch let lift limit link list load locate lock log look lookup loop lose
lower maintain make manage manipulate map mark mask match maximize measure merge minimize mirror mix model modify
monitor move multiply mutate name need negate normalize note notice notify obtain offer open operate optimize order
output overload override overwrite pack pad paint parametrize parse partition pass paste patch perform permute persist
pickle place plot pop populate post postpone precompute predict prefer prepare prepend preprocess present preserve
pretty-print prevent print process produce project promote propagate prove provide prune publish pull push put
quantize query queue quit quote raise randomize rank re-enable read realize rebuild recalculate receive recognize
recompute reconstruct record recover recurse redirect reduce re-raise refer refine reflect refresh register reject
relabel relate release reload remember remove rename render reorder repeat replace replay report represent request
require reraise resample rescale reserve reset reshape resize resolve respond restore restrict resume retain retrieve
retry return reverse revert rewrite roll rotate round run sample sanitize save say scale scan scatter schedule search
see select send separate serialize serve set setup shade shard share shift show shrink shuffle shut signal simplify
simulate skip slice solve sort spawn specify split squeeze stack start stop store strip sub submit subscribe subset
subtract suggest sum supply support suppose suppress suspend swap switch symbolize synchronize take tell terminate
test threshold throw tile time toggle tokenize trace track train transfer transform translate transpose traverse treat
trigger trim truncate try tune turn unbind undo unflatten unify uninstall unlock unpack unregister unset unwrap update
upgrade upload upsample use validate verify view visit wait walk want warn watch work wrap write yield zero zip
"""  # noqa: E501
VERBS = frozenset(_VERBS.split())
# What else a short sentence may begin with.
_OPENERS = """
this these it there they we you here let's don't for to in with by as unlike on at given after before if when also
only be please first currently now then not all it's recursively temporarily efficiently lazily safely
"""  # noqa: E501
OPENERS = frozenset(_OPENERS.split())
_SENTENCE_END = re.compile(r"[.!?:][\"')”’]*$")


def plain(paragraph: str) -> str:
    """Return a paragraph without its inline markup: roles, emphasis, code marks, links,
    footnotes."""
    text = re.sub(r":math:`([^`]*)`|\$([^$]+)\$", _formula, paragraph)
    text = re.sub(r"(\w*)\s*\[#?[\w*]+\]_+", _footnote, text)
    # names of links
    text = re.sub(r"(?<!\S)([A-Za-z][\w.-]*[A-Za-z0-9])__?(?=[\s.,;)]|$)", r"\1", text)
    # Markdown of the hub's packages
    text = re.sub(r"\[`~?([^`]*)`\](?:\([^)]*\))?", _last_part, text)
    text = re.sub(r"!?\[([^\]]+)\]\([^)]*\)", r"\1", text)
    text = re.sub(r":[a-zA-Z][\w:+-]*:`([^`]*)`", _role, text)
    text = re.sub(r"`([^`<]+?)\s*<[^`>]*>`_{0,2}", r"\1", text)
    text = re.sub(r"``(.+?)``", r"\1", text)
    text = re.sub(r"`([^`]+)`_{0,2}", r"\1", text)
    text = re.sub(r"(?<![\w*])(\*{1,3})(?=\S)([^*]+?)(?<=\S)\1(?![\w*])", r"\2", text)
    text = re.sub(r"\|([\w ]+)\|", r"\1", text)
    text = re.sub(r"\\(?=\W)[, ]?", "", text)  # escapes, and the thin space of formulas
    return re.sub(r"\s+", " ", text.replace("\u00a0", " ")).strip()


def _formula(match: re.Match[str]) -> str:
    """A formula that reads as text: letters, numbers, names of Greek letters; another
    keeps its mark."""
    text = _GREEK.sub(lambda name: name[1], match[1] or match[2] or "")
    return text if _SIMPLE_MATH.fullmatch(text) else f":math:`{text}`"


def _footnote(match: re.Match[str]) -> str:
    """What stays of a footnote: nothing, save where its sentence cannot do without it
    ("as shown in [1]_")."""
    needs_it = {"in", "by", "of", "to", "see", "and", "from", "following", "e"}
    return match[0] if match[1].lower() in needs_it else match[1]


def _role(match: re.Match[str]) -> str:
    target = match[1]
    if match[0].startswith(":math:"):
        return match[0]
    if "<" in target:
        return target.split("<")[0].strip()
    return target[1:].split(".")[-1] if target.startswith("~") else target.lstrip("!.")


def _last_part(match: re.Match[str]) -> str:
    return match[1].split(".")[-1]


def prose(paragraph: str, summary: bool = False) -> str | None:
    """Return a paragraph as plain prose, or None where it is something else."""
    text = plain(paragraph)
    words = text.split()
    if len(words) < SHORTEST or _NOT_PROSE.search(text):
        return None
    if not _SENTENCE_END.search(text) and not (
        summary and words[-1].isalpha() and len(words) >= LONG_ENOUGH
    ):
        return None
    if text.endswith(":") and len(words) < LONG_ENOUGH:
        return None
    code_first = (
        paragraph[0] in "`:*"
        or "_" in words[0]
        or re.fullmatch(r"\w+\.\w[\w.]*", words[0])
    )
    if not re.match(r"[\"'(“]?[A-Z0-9]", text) and not (
        (summary or code_first) and not words[0].endswith(":")
    ):
        return None
    if _is_label(text, words):
        return None
    function_words = sum(
        word.strip("\"'(),.;:").lower() in FUNCTION_WORDS for word in words
    )
    plain_words = sum(bool(_WORD.fullmatch(word)) for word in words)
    if function_words < 0.1 * len(words) or plain_words < 0.7 * len(words):
        return None
    return text


def _is_label(text: str, words: list[str]) -> bool:
    """Whether a short paragraph names things and says nothing about them: some sentence
    of it has no main verb."""
    if len(words) >= LABEL_SHORTER_THAN:
        return False
    return not all(
        _has_main_verb(sentence) for sentence in _BETWEEN_SENTENCES.split(text)
    )


def _has_main_verb(sentence: str) -> bool:
    first, *others = _bare(sentence)
    # "List of", "Support for"
    if (first in OPENERS or _may_be_verb(first)) and others[:1] not in (
        ["of"],
        ["for"],
    ):
        return True
    main = _bare(_SUBORDINATE.sub("", sentence))
    if not _FINITE.isdisjoint(main) or any(
        word.endswith(("n't", "n’t")) for word in main
    ):
        return True
    # "A lexer outputs the tokens", but not "Helper to parse the tokens"
    return any(
        _may_be_verb(word)
        and following in _DETERMINERS
        and before not in ("to", "and", "or")
        for before, word, following in zip(main, main[1:], main[2:], strict=False)
    )


def _bare(sentence: str) -> list[str]:
    return [word.strip("\"'(),.;:“”").lower() for word in sentence.split()]


def _may_be_verb(word: str) -> bool:
    return not VERBS.isdisjoint(
        {
            word,
            word.removesuffix("s"),
            word.removesuffix("es"),
            re.sub("ies$", "y", word),
        }
    )
