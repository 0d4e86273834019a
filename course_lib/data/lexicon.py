"""The words of the `translation` data set: what :mod:`course_lib.data.translation`
draws from.

Tables, and nothing else. Every French form is written out, because a form that a rule
makes is a form that nobody has read. The one thing worked out here is whether a word
begins with a vowel sound, which decides l', d', n', qu', cet, mon, vieil: French elides
before a vowel and before most h (l' homme), but not before the "aspirated" h of le
hibou.
"""

from typing import NamedTuple

ASPIRATED = frozenset({"hibou", "hiboux"})
VOWELS = frozenset("aàâeéèêiîïoôuùûhœ")


def elides(word: str) -> bool:
    """Say whether a French word that stands before this one is elided."""
    return word[0] in VOWELS and word not in ASPIRATED


class Noun(NamedTuple):
    """A noun in both languages; `human` chooses between "who" and "which"."""

    en: str
    en_plural: str
    fr: str
    fr_plural: str
    feminine: bool
    human: bool


class Adjective(NamedTuple):
    """An adjective and its French forms; `before_vowel` is the masculine singular of un
    vieil homme."""

    en: str
    masculine: str
    feminine: str
    masculine_plural: str
    feminine_plural: str
    before_vowel: str

    def agree(self, feminine: bool, plural: bool, next_word: str = "x") -> str:
        """Return the French form for this gender and number, before `next_word`."""
        if plural:
            return self.feminine_plural if feminine else self.masculine_plural
        if feminine:
            return self.feminine
        return self.before_vowel if elides(next_word) else self.masculine


class Verb(NamedTuple):
    """A verb in the third person: singular, plural (which is also the English base
    form), and English particle."""

    en: str
    en_plural: str
    fr: str
    fr_plural: str
    particle: str = ""


class Name(NamedTuple):
    """An official name. `sources[t]` holds the positions of the English words that
    French word t translates."""

    en: tuple[str, ...]
    fr: tuple[str, ...]
    sources: tuple[tuple[int, ...], ...]
    feminine: bool
    plural: bool


def _noun(line: str) -> Noun:
    en, en_plural, fr, fr_plural, gender, kind = line.split()
    return Noun(en, en_plural, fr, fr_plural, gender == "f", kind == "who")


def _adjective(line: str) -> Adjective:
    en, *forms = line.split()
    masculine, feminine, masculine_plural, feminine_plural = forms[:4]
    before_vowel = forms[4] if len(forms) == 5 else masculine
    return Adjective(
        en, masculine, feminine, masculine_plural, feminine_plural, before_vowel
    )


def _verb(line: str) -> Verb:
    return Verb(*line.split())


def _name(en: str, fr: str, sources: str, agreement: str) -> Name:
    links = tuple(
        tuple(int(position) for position in cell.split("+")) for cell in sources.split()
    )
    return Name(
        tuple(en.split()), tuple(fr.split()), links, "f" in agreement, "p" in agreement
    )


NOUNS: tuple[Noun, ...] = tuple(
    _noun(line)
    for line in """
    minister ministers ministre ministres m who
    man men homme hommes m who
    woman women femme femmes f who
    child children enfant enfants m who
    queen queens reine reines f who
    king kings roi rois m who
    friend friends ami amis m who
    girl girls fille filles f who
    actress actresses actrice actrices f who
    student students étudiant étudiants m who
    lawyer lawyers avocat avocats m who
    doctor doctors médecin médecins m who
    cat cats chat chats m which
    dog dogs chien chiens m which
    bird birds oiseau oiseaux m which
    horse horses cheval chevaux m which
    owl owls hibou hiboux m which
    tree trees arbre arbres m which
    house houses maison maisons f which
    school schools école écoles f which
    factory factories usine usines f which
    hospital hospitals hôpital hôpitaux m which
    car cars voiture voitures f which
    book books livre livres m which
    newspaper newspapers journal journaux m which
    garden gardens jardin jardins m which
    boat boats bateau bateaux m which
    island islands île îles f which
    idea ideas idée idées f which
    """.strip().splitlines()
)

# English singular and plural; French masculine, feminine, masculine plural: used
# without an article (je suis étudiant).
PROFESSIONS: tuple[tuple[str, str, str, str, str], ...] = (
    ("student", "students", "étudiant", "étudiante", "étudiants"),
    ("lawyer", "lawyers", "avocat", "avocate", "avocats"),
    ("doctor", "doctors", "médecin", "médecin", "médecins"),
)

# The few that French puts before the noun.
ADJECTIVES_BEFORE: tuple[Adjective, ...] = tuple(
    _adjective(line)
    for line in """
    old vieux vieille vieux vieilles vieil
    new nouveau nouvelle nouveaux nouvelles nouvel
    beautiful beau belle beaux belles bel
    small petit petite petits petites
    big grand grande grands grandes
    young jeune jeune jeunes jeunes
    """.strip().splitlines()
)

# Qualities, after the noun.
ADJECTIVES_AFTER: tuple[Adjective, ...] = tuple(
    _adjective(line)
    for line in """
    red rouge rouge rouges rouges
    green vert verte verts vertes
    black noir noire noirs noires
    white blanc blanche blancs blanches
    famous célèbre célèbre célèbres célèbres
    dangerous dangereux dangereuse dangereux dangereuses
    modern moderne moderne modernes modernes
    strange étrange étrange étranges étranges
    """.strip().splitlines()
)

# What a thing belongs to: closest to the noun in both languages, hence on its other
# side in French.
ADJECTIVES_RELATIONAL: tuple[Adjective, ...] = tuple(
    _adjective(line)
    for line in """
    european européen européenne européens européennes
    economic économique économique économiques économiques
    foreign étranger étrangère étrangers étrangères
    """.strip().splitlines()
)

TRANSITIVE: tuple[Verb, ...] = tuple(
    _verb(line)
    for line in """
    sees see voit voient
    loves love aime aiment
    finds find trouve trouvent
    follows follow suit suivent
    hears hear entend entendent
    knows know connaît connaissent
    protects protect protège protègent
    chooses choose choisit choisissent
    """.strip().splitlines()
)

# Two words in English, one in French.
WITH_PARTICLE: tuple[Verb, ...] = tuple(
    _verb(line)
    for line in """
    looks look regarde regardent at
    looks look cherche cherchent for
    waits wait attend attendent for
    listens listen écoute écoutent to
    """.strip().splitlines()
)

INTRANSITIVE: tuple[Verb, ...] = tuple(
    _verb(line)
    for line in """
    sleeps sleep dort dorment
    sings sing chante chantent
    works work travaille travaillent
    arrives arrive arrive arrivent
    laughs laugh rit rient
    """.strip().splitlines()
)

DITRANSITIVE: tuple[Verb, ...] = (
    Verb("gives", "give", "donne", "donnent"),
    Verb("shows", "show", "montre", "montrent"),
)
SPEAK = Verb("speaks", "speak", "parle", "parlent")
BE = Verb("is", "are", "est", "sont")
# With an indicative after "que"; never negated here, for "ne pense pas que" wants the
# subjunctive.
REPORTING: tuple[Verb, ...] = (
    Verb("says", "say", "dit", "disent"),
    Verb("thinks", "think", "pense", "pensent"),
    Verb("hopes", "hope", "espère", "espèrent"),
)

# English, then French: masculine, masculine before a vowel, feminine, feminine before a
# vowel.
DETERMINERS_SINGULAR: tuple[tuple[str, str, str, str, str], ...] = (
    ("the", "le", "l'", "la", "l'"),
    ("the", "le", "l'", "la", "l'"),  # twice: drawn twice as often
    ("a", "un", "un", "une", "une"),
    ("this", "ce", "cet", "cette", "cette"),
    ("my", "mon", "mon", "ma", "mon"),
    ("our", "notre", "notre", "notre", "notre"),
    ("every", "chaque", "chaque", "chaque", "chaque"),
)
# "some" is quelques, never the des of an indefinite plural: here des is always de +
# les.
DETERMINERS_PLURAL: tuple[tuple[str, str], ...] = (
    ("the", "les"),
    ("the", "les"),
    ("some", "quelques"),
    ("these", "ces"),
    ("my", "mes"),
    ("our", "nos"),
    ("two", "deux"),
    ("three", "trois"),
)

PREPOSITIONS: tuple[tuple[str, str], ...] = (
    ("in", "dans"),
    ("on", "sur"),
    ("under", "sous"),
    ("behind", "derrière"),
    ("with", "avec"),
    ("without", "sans"),
    ("near", "près de"),
    ("in front of", "devant"),
)

SHORT_PREPOSITIONS = tuple(pair for pair in PREPOSITIONS if " " not in pair[0])

ADVERBS: tuple[tuple[str, str], ...] = (
    ("often", "souvent"),
    ("always", "toujours"),
    ("never", "jamais"),
)

CONJUNCTIONS: tuple[tuple[str, str], ...] = (
    ("and", "et"),
    ("but", "mais"),
    ("because", "parce que"),
    ("while", "pendant que"),
    ("when", "quand"),
)

NAMES: tuple[Name, ...] = (
    _name("european union", "union européenne", "1 0", "f"),
    _name("united nations", "nations unies", "1 0", "fp"),
    _name("european economic area", "zone économique européenne", "2 1 0", "f"),
    _name("european central bank", "banque centrale européenne", "2 1 0", "f"),
    _name("european space agency", "agence spatiale européenne", "2 1 0", "f"),
    _name("international monetary fund", "fonds monétaire international", "2 1 0", "m"),
    _name("international criminal court", "cour pénale internationale", "2 1 0", "f"),
    _name("common agricultural policy", "politique agricole commune", "2 1 0", "f"),
    _name(
        "world health organisation",
        "organisation mondiale de la santé",
        "2 0 1 1 1",
        "f",
    ),
    _name(
        "world trade organisation", "organisation mondiale du commerce", "2 0 1 1", "f"
    ),
    _name(
        "north atlantic treaty organisation",
        "organisation du traité de l' atlantique nord",
        "3 2 2 1 1 1 0",
        "f",
    ),
    _name(
        "international civil aviation organisation",
        "organisation de l' aviation civile internationale",
        "3 2 2 2 1 0",
        "f",
    ),
    _name(
        "european economic and social committee",
        "comité économique et social européen",
        "4 1 2 3 0",
        "m",
    ),
)
