"""How a sentence encoder lies on disk: the folder layout of the library
sentence-transformers, read and written.

``modules.json`` lists what a sentence goes through: a Transformer, whose files lie in
the folder itself, a Pooling, whose ``config.json`` names the pooling, and perhaps a
Normalize. ``sentence_bert_config.json`` says after how many tokens a sentence is cut;
where it does not, ``tokenizer_config.json`` does. All of it is data, and is checked
before use. What would change the vectors and is not known here (a Dense layer, a prompt
before each sentence, two poolings at once) is refused, not left out.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from course_lib.bert.files import MOST, write_json

Pooling: TypeAlias = Literal["mean", "cls", "max"]
POOLINGS: tuple[Pooling, ...] = get_args(Pooling)

MODULES = "modules.json"
LIMITS = "sentence_bert_config.json"
MODEL = "config_sentence_transformers.json"
POOLING_FOLDER, NORMALIZE_FOLDER = "1_Pooling", "2_Normalize"
TOKENIZER_CONFIG = "tokenizer_config.json"
FILES = (
    MODULES,
    LIMITS,
    MODEL,
    TOKENIZER_CONFIG,
    f"{POOLING_FOLDER}/config.json",
    f"{NORMALIZE_FOLDER}/config.json",
)
"""What a hub is asked for, beside the files of the encoder."""

# The names that sentence-transformers gave the poolings up to its version 5, one switch
# each; and those it has now.
SWITCHES: dict[str, Pooling] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
}
# What version 6 says of the encoder: that its last hidden states are what is pooled.
ONLY: dict[str, Any] = {
    "transformer_task": "feature-extraction",
    "module_output_name": "token_embeddings",
    "modality_config": {
        "text": {"method": "forward", "method_output_name": "last_hidden_state"}
    },
}
WIDTHS = ("embedding_dimension", "word_embedding_dimension")


@dataclass(frozen=True)
class SentenceLayout:
    """What a folder says of a sentence encoder, beside weights and tokenizer."""

    pooling: Pooling = "mean"
    normalize: bool = False
    max_length: int | None = None
    lowercase: bool = False
    width: int | None = None
    encoder: str = ""
    tokenizer_length: int | None = None


def read_layout(folder: Path) -> SentenceLayout:
    """Read and check what a folder says of its sentence encoder."""
    places = _places(folder / MODULES)
    pooling, width = _read_pooling(folder / places["Pooling"] / "config.json")
    encoder = folder / places["Transformer"]
    max_length, lowercase = _read_limits(encoder / LIMITS)
    tokenizer_length = _read_tokenizer_length(encoder / TOKENIZER_CONFIG)
    _check_prompts(folder / MODEL)
    if "Normalize" in places:
        _check_normalize(folder / places["Normalize"] / "config.json")
    return SentenceLayout(
        pooling,
        "Normalize" in places,
        max_length,
        lowercase,
        width,
        places["Transformer"],
        tokenizer_length,
    )


def write_layout(folder: Path, layout: SentenceLayout, width: int) -> None:
    """Write what `read_layout` and sentence-transformers, of any version, read."""
    (folder / POOLING_FOLDER).mkdir(parents=True, exist_ok=True)
    switches = {name: pooling == layout.pooling for name, pooling in SWITCHES.items()}
    write_json(
        folder / POOLING_FOLDER / "config.json",
        {"word_embedding_dimension": width, **switches},
    )
    write_json(
        folder / LIMITS,
        {"max_seq_length": layout.max_length, "do_lower_case": layout.lowercase},
    )
    write_json(
        folder / MODEL,
        {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"},
    )
    places = {"Transformer": "", "Pooling": POOLING_FOLDER}
    if layout.normalize:
        (folder / NORMALIZE_FOLDER).mkdir(exist_ok=True)
        places["Normalize"] = NORMALIZE_FOLDER
    modules = [
        {
            "idx": index,
            "name": str(index),
            "path": place,
            "type": f"sentence_transformers.models.{kind}",
        }
        for index, (kind, place) in enumerate(places.items())
    ]
    write_json(folder / MODULES, modules)


def _places(path: Path) -> dict[str, str]:
    """The subfolder of each module, in the one order that makes a sentence vector."""
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no {path}, which says how sentences become vectors. For a plain"
            " BERT decide that yourself:"
            " SentenceBert(load_bert(folder),"
            " FastWordPiece.load(folder), pooling='mean')"
        )
    places: dict[str, str] = {}
    for module in _read(path, list):
        reference, place = (
            module.get(x) if isinstance(module, dict) else None
            for x in ("type", "path")
        )
        if not (isinstance(reference, str) and isinstance(place, str)):
            raise ValueError(
                f"{path}: a module has no type or no path; each needs both, as words"
            )
        kind = reference.rpartition(".")[2]
        expected = (
            ("Transformer", "Pooling", "Normalize")[len(places)]
            if len(places) < 3
            else "nothing"
        )
        if not reference.startswith("sentence_transformers.") or kind != expected:
            raise ValueError(
                f"{path}: module {len(places)} is {reference}, where {expected} is"
                " expected; this course knows a Transformer, then Pooling, then"
                " perhaps Normalize"
            )
        # It becomes part of a path: a name, and no way out of the folder.
        if place and (
            place in (".", "..")
            or place != Path(place).name
            or "\\" in place
            or "\0" in place
        ):
            raise ValueError(
                f"{path}: the path of {kind} is {place!r}; expected the name of a"
                " folder beside it"
            )
        places[kind] = place
    if "Pooling" not in places:
        raise ValueError(
            f"{path} names {', '.join(places) or 'no module'}; expected at least a"
            " Transformer and Pooling"
        )
    return places


def _read_pooling(path: Path) -> tuple[Pooling, int | None]:
    settings = _read(path, dict)
    if settings.get("include_prompt", True) is not True:
        raise ValueError(
            f"{path}: include_prompt is {settings['include_prompt']!r}; this course"
            " pools over all tokens"
        )
    names = settings.get("pooling_mode")
    if names is None:
        switched = [
            name
            for name, on in settings.items()
            if name.startswith("pooling_mode_") and on is True
        ]
        names = [SWITCHES.get(name, name) for name in switched]
    names = [names] if isinstance(names, str) else names
    if not (isinstance(names, list) and len(names) == 1 and names[0] in POOLINGS):
        raise ValueError(
            f"{path} asks for the pooling {names!r}; this course knows one of"
            f" {', '.join(POOLINGS)}"
        )
    width = next((settings[name] for name in WIDTHS if name in settings), None)
    return names[0], _whole(path, "the width of its states", width)


def _read_limits(path: Path) -> tuple[int | None, bool]:
    settings = _settings(path)
    for name, known in ONLY.items():
        if settings.get(name, known) != known:
            raise ValueError(
                f"{path}: {name} is {settings[name]!r}; this course knows only"
                f" {known!r}"
            )
    lowercase = settings.get("do_lower_case", False)
    if not isinstance(lowercase, bool):
        raise ValueError(
            f"{path}: do_lower_case is {lowercase!r}; expected true or false"
        )
    return _whole(path, "max_seq_length", settings.get("max_seq_length")), lowercase


def _read_tokenizer_length(path: Path) -> int | None:
    value = _settings(path).get("model_max_length")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 1:
        raise ValueError(
            f"{path}: model_max_length is {value!r}; expected a whole number above 0"
        )
    return int(min(value, MOST))  # transformers writes 1e30 where there is no limit


def _check_prompts(path: Path) -> None:
    """A prompt stands before every sentence and changes its vector."""
    name = _settings(path).get("default_prompt_name")
    if name is not None:
        raise ValueError(
            f"{path}: default_prompt_name is {name!r}, a text to be put before every"
            " sentence, which this course does not do; put it there yourself, and"
            " remove the name from the file"
        )


def _check_normalize(path: Path) -> None:
    settings = _settings(path)
    for name in ("module_input_name", "module_output_name"):
        if settings.get(name) not in (None, "sentence_embedding"):
            raise ValueError(
                f"{path}: {name} is {settings[name]!r}; this course normalises"
                " sentence_embedding only"
            )


def _whole(path: Path, name: str, value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(
            f"{path}: {name} is {value!r}; expected a whole number above 0"
        )
    return value


def _settings(path: Path) -> dict[str, Any]:
    """Read a file of settings that older versions do not write."""
    return _read(path, dict) if path.is_file() else {}


def _read(path: Path, kind: type) -> Any:
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no {path}, which the sentence encoder needs; fetch the whole"
            " folder again"
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # of encoding, or of JSON
        raise ValueError(f"{path} is no JSON: {error}; fetch it again") from error
    if not isinstance(content, kind):
        raise ValueError(
            f"{path} holds no"
            f" {'table of settings' if kind is dict else 'list of modules'}; fetch it"
            " again"
        )
    return content
