"""The phrase grammar of the `translation` data set: English and French built together,
with their word alignment.

The grammar is synchronous: one rule builds a phrase in both languages at once (Wu 1997;
Chiang 2007). A French word is made together with references to the English words that
it translates, so a link cannot be lost or moved when phrases are put in another order.
Nothing is aligned afterwards.

Every rule takes the exact number of English words that it has to fill, so that sentence
lengths are spread evenly and quality can be measured against length. What the rules
cover: agreement in gender and number, adjectives that change side, official names and
possessives whose order turns round, elision and contraction, negation (one word to
two), verbs with particles (two words to one), relative clauses, reported speech.

What it does not do: sense. Words are drawn freely ("the red idea dances"), which is
what stops a model from guessing a word instead of translating it.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from course_lib.data import lexicon as lex
from course_lib.data.lexicon import Adjective, Verb, elides

Item = TypeVar("Item")


class Word:
    """One English word at one place in a sentence: links refer to it, whatever its
    position becomes."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


# A French word and the English words that it translates.
Target = tuple[str, tuple[Word, ...]]


@dataclass(slots=True)
class Phrase:
    """A phrase in both languages. Each French word comes with the English words that it
    translates."""

    en: list[Word]
    fr: list[Target]
    feminine: bool = False
    plural: bool = False
    human: bool = False


def _preposition(english: str, french: str, noun_phrase: Phrase) -> Phrase:
    """Put a preposition before a noun phrase: de + le = du, à + les = aux, de + un = d'
    un."""
    words = [Word(text) for text in english.split()]
    *before, last = french.split()
    fr = [(text, tuple(words)) for text in before]
    (first, sources), rest = noun_phrase.fr[0], noun_phrase.fr[1:]
    contracted = {
        ("de", "le"): "du",
        ("de", "les"): "des",
        ("à", "le"): "au",
        ("à", "les"): "aux",
    }.get((last, first))
    if contracted:
        fr += [(contracted, (*words, *sources)), *rest]
    else:
        fr += [
            ("d'" if last == "de" and elides(first) else last, tuple(words)),
            *noun_phrase.fr,
        ]
    return Phrase(words + noun_phrase.en, fr)


def _subordinate(english: str, french: str, clause: Phrase) -> Phrase:
    """Put a conjunction before a clause: que becomes qu' before a vowel."""
    words = [Word(text) for text in english.split()]
    texts = french.split()
    if texts[-1] == "que" and elides(clause.fr[0][0]):
        texts[-1] = "qu'"
    return Phrase(
        words + clause.en, [(text, tuple(words)) for text in texts] + clause.fr
    )


def _definite(first: str, feminine: bool, plural: bool) -> str:
    """Return the French definite article before a word."""
    if plural:
        return "les"
    return "l'" if elides(first) else "la" if feminine else "le"


def _indefinite(next_word: str) -> str:
    return "an" if next_word[0] in "aeio" and next_word != "european" else "a"


@dataclass(slots=True)
class Grammar:
    """One method a phrase type. `length` is always the exact number of English words to
    fill."""

    rng: random.Random

    def draw(self, items: Sequence[Item]) -> Item:
        return items[int(self.rng.random() * len(items))]

    def between(self, low: int, high: int) -> int:
        """Draw an integer from low to high, both included."""
        return low + int(self.rng.random() * (high - low + 1))

    # -- noun phrases
    # ----------------------------------------------------------------------------------

    def noun_phrase(self, length: int) -> Phrase:
        """A noun phrase of 2 words or more, which always begins with its determiner in
        French."""
        chance = self.rng.random()
        if 3 <= length <= 6 and chance < 0.2:
            return self.name(length)
        if length >= 4 and chance < 0.4:
            if length <= 8:
                return self.possessive(length)
            head = self.possessive(self.between(4, min(7, length - 2)))
        elif length <= 4:
            return self.bare(length)
        else:
            head = self.bare(self.between(2, min(4, length - 2)))
        return self.modified(head, length - len(head.en))

    def modified(self, head: Phrase, length: int) -> Phrase:
        """A head followed by a relative clause or a prepositional phrase of this length
        (2 or more)."""
        if length == 2 or self.rng.random() < 0.35:
            pronoun = Word("who" if head.human else "which")
            verb = self.verb_phrase(length - 1, head.feminine, head.plural)
            tail = Phrase([pronoun, *verb.en], [("qui", (pronoun,)), *verb.fr])
        elif self.rng.random() < 0.5:
            tail = _preposition("of", "de", self.noun_phrase(length - 1))
        else:
            tail = self.prepositional(length)
        return Phrase(
            head.en + tail.en, head.fr + tail.fr, head.feminine, head.plural, head.human
        )

    def prepositional(self, length: int) -> Phrase:
        """A preposition and its noun phrase, 3 words or more."""
        english, french = self.draw(
            lex.PREPOSITIONS if length >= 5 else lex.SHORT_PREPOSITIONS
        )
        return _preposition(
            english, french, self.noun_phrase(length - len(english.split()))
        )

    def bare(self, length: int) -> Phrase:
        """Determiner, adjectives, noun: 2 to 5 words."""
        plural = self.rng.random() < 0.4
        nominal = self.nominal(length - 1, plural)
        first = nominal.fr[0][0]
        if plural:
            english, french = self.draw(lex.DETERMINERS_PLURAL)
        else:
            english, *forms = self.draw(lex.DETERMINERS_SINGULAR)
            french = forms[2 * nominal.feminine + elides(first)]
            if english == "a":
                english = _indefinite(nominal.en[0].text)
        word = Word(english)
        nominal.en.insert(0, word)
        nominal.fr.insert(0, (french, (word,)))
        return nominal

    def nominal(self, length: int, plural: bool) -> Phrase:
        """A noun and its adjectives, 1 to 4 words: "big famous european" N becomes
        "grande" N "européenne célèbre"."""
        noun = self.draw(lex.NOUNS)
        feminine = noun.feminine
        text = noun.fr_plural if plural else noun.fr
        word = Word(noun.en_plural if plural else noun.en)
        en = [word]
        fr: list[Target] = [(text, (word,))]
        if length > 1:
            kinds = [lex.ADJECTIVES_BEFORE, lex.ADJECTIVES_AFTER]
            kinds.append(lex.ADJECTIVES_RELATIONAL)
            chosen = sorted(self.rng.sample(range(3), length - 1), reverse=True)
            for kind in chosen:  # nearest to the noun first
                adjective = self.draw(kinds[kind])
                word = Word(adjective.en)
                en.insert(0, word)
                following = text if kind == 0 else "x"
                form = (adjective.agree(feminine, plural, following), (word,))
                fr.insert(0 if kind == 0 else len(fr), form)
        return Phrase(en, fr, feminine, plural, noun.human)

    def name(self, length: int) -> Phrase:
        """The article and an official name, 3 to 6 words."""
        name = self.draw([name for name in lex.NAMES if len(name.en) == length - 1])
        article, words = Word("the"), [Word(text) for text in name.en]
        fr = [
            (text, tuple(words[s] for s in sources))
            for text, sources in zip(name.fr, name.sources, strict=True)
        ]
        french = _definite(name.fr[0], name.feminine, name.plural)
        return Phrase(
            [article, *words], [(french, (article,)), *fr], name.feminine, name.plural
        )

    def possessive(self, length: int) -> Phrase:
        """The owner 's thing, which French turns round (la chose du propriétaire): 4
        words or more."""
        thing_length = self.between(1, min(3, length - 3))
        owner_length = length - 1 - thing_length
        owner = (
            self.bare(owner_length)
            if owner_length <= 4
            else self.possessive(owner_length)
        )
        plural = self.rng.random() < 0.3
        thing = self.nominal(thing_length, plural)
        # English writes the students ' dog but the children 's dog; a nominal ends with
        # its noun in English.
        mark = "'" if owner.plural and owner.en[-1].text.endswith("s") else "'s"
        of = _preposition(mark, "de", owner)
        genitive = of.en[0]
        article = _definite(thing.fr[0][0], thing.feminine, plural)
        return Phrase(
            [*owner.en, genitive, *thing.en],
            [(article, (genitive,)), *thing.fr, *of.fr],
            thing.feminine,
            plural,
            thing.human,
        )

    # -- verb phrases
    # ----------------------------------------------------------------------------------

    def verb_phrase(self, length: int, feminine: bool, plural: bool) -> Phrase:
        """A verb phrase of 1 word or more that agrees with its subject."""
        chance = self.rng.random()
        if length == 1:
            return self.verb(self.draw(lex.INTRANSITIVE), plural, 0)
        if length == 2 or (chance < 0.2 and length <= 9):
            return self.predicate(length, feminine, plural)
        adverbs = self.draw((0, 0, 0, 1, 1, 2)) if length >= 5 else 0
        rest = length - adverbs
        if rest >= 7 and chance < 0.4:
            verb = self.verb(self.draw(lex.DITRANSITIVE), plural, adverbs)
            thing_length = self.between(2, min(4, rest - 4))
            thing = self.noun_phrase(thing_length)
            to = _preposition("to", "à", self.noun_phrase(rest - 2 - thing_length))
            return Phrase(verb.en + thing.en + to.en, verb.fr + thing.fr + to.fr)
        if rest >= 4 and chance < 0.6:
            if chance < 0.46:
                verb = self.verb(lex.SPEAK, plural, adverbs)
                tail = _preposition("to", "à", self.noun_phrase(rest - 2))
            else:
                verb = self.verb(self.draw(lex.INTRANSITIVE), plural, adverbs)
                tail = self.prepositional(rest - 1)
        else:
            entry = self.draw(
                (*lex.TRANSITIVE, *lex.WITH_PARTICLE) if rest >= 4 else lex.TRANSITIVE
            )
            verb = self.verb(entry, plural, adverbs)
            tail = self.noun_phrase(length - len(verb.en))
        return Phrase(verb.en + tail.en, verb.fr + tail.fr)

    def verb(self, verb: Verb, plural: bool, adverbs: int) -> Phrase:
        """A verb with 0 words of adverb, 1 (often, always, never) or 2 (does not)."""
        french = verb.fr_plural if plural else verb.fr
        ne = "n'" if elides(french) else "ne"
        main = Word(verb.en_plural if plural or adverbs == 2 else verb.en)
        particle = [Word(verb.particle)] if verb.particle else []
        if adverbs == 2:
            do, negation = Word("do" if plural else "does"), Word("not")
            return Phrase(
                [do, negation, main, *particle],
                [
                    (ne, (negation,)),
                    (french, (do, main, *particle)),
                    ("pas", (negation,)),
                ],
            )
        en, fr = [main, *particle], [(french, (main, *particle))]
        if adverbs == 0:
            return Phrase(en, fr)
        english, after = self.draw(lex.ADVERBS)
        adverb = Word(english)
        before = [(ne, (adverb,))] if english == "never" else []
        return Phrase([adverb, *en], [*before, *fr, (after, (adverb,))])

    def predicate(self, length: int, feminine: bool, plural: bool) -> Phrase:
        """A form of "be", "not" perhaps, and adjectives that agree with the subject;
        then a place: 2 words or more."""
        be = Word("are" if plural else "is")
        negation = (
            Word("not")
            if length == 3 or (length >= 6 and self.rng.random() < 0.3)
            else None
        )
        # "and" after "not" would be "ni" in French: never both. A place has 3 words or
        # more: 4 leave no choice.
        two = length == 4 or (
            length >= 7 and negation is None and self.rng.random() < 0.3
        )
        kinds = (*lex.ADJECTIVES_BEFORE, *lex.ADJECTIVES_AFTER)
        adjectives: list[Adjective] = self.rng.sample(kinds, 2 if two else 1)
        en = [be] if negation is None else [be, negation]
        form = "sont" if plural else "est"
        fr: list[Target] = [(form, (be,))]
        if negation:
            fr = [("ne" if plural else "n'", (negation,)), *fr, ("pas", (negation,))]
        for i, adjective in enumerate(adjectives):
            if i:
                conjunction = Word("and")
                en.append(conjunction)
                fr.append(("et", (conjunction,)))
            word = Word(adjective.en)
            en.append(word)
            fr.append((adjective.agree(feminine, plural), (word,)))
        rest = length - len(en)
        if rest:
            place = self.prepositional(rest)
            en, fr = en + place.en, fr + place.fr
        return Phrase(en, fr)

    # -- clauses
    # ----------------------------------------------------------------------------------

    def clause(self, length: int) -> Phrase:
        """A clause of 3 words or more."""
        chance = self.rng.random()
        if length in (3, 4, 5) and chance < 0.25:
            return self.profession(length)
        if length >= 8 and chance < 0.2:
            subject = self.subject(self.between(1, min(4, length - 5)))
            said = self.verb(self.draw(lex.REPORTING), subject.plural, 0)
            clause = self.clause(length - len(subject.en) - 2)
            rest = _subordinate("that", "que", clause)
            head = Phrase(subject.en + said.en, subject.fr + said.fr)
            return Phrase(head.en + rest.en, head.fr + rest.fr)
        words = self.between(1, max(2, length // 2)) if length > 3 else 2
        subject = self.subject(words)
        left = length - len(subject.en)
        verb = self.verb_phrase(left, subject.feminine, subject.plural)
        return Phrase(subject.en + verb.en, subject.fr + verb.fr)

    def subject(self, length: int) -> Phrase:
        if length > 1:
            return self.noun_phrase(length)
        english, french, feminine = self.draw(
            (("he", "il", False), ("she", "elle", True))
        )
        word = Word(english)
        return Phrase([word], [(french, (word,))], feminine, False, True)

    def profession(self, length: int) -> Phrase:
        """I am a student: je suis étudiant. The English article has no French word. 3
        to 5 words."""
        english, english_plural, masculine, feminine, masculine_plural = self.draw(
            lex.PROFESSIONS
        )
        if length == 3:
            pronoun, be, noun = Word("we"), Word("are"), Word(english_plural)
            return Phrase(
                [pronoun, be, noun],
                [("nous", (pronoun,)), ("sommes", (be,)), (masculine_plural, (noun,))],
            )
        who, form, il, est = self.draw(
            (
                ("i", "am", "je", "suis"),
                ("he", "is", "il", "est"),
                ("she", "is", "elle", "est"),
            )
        )
        pronoun = Word(who)
        be = Word(form)
        article = Word(_indefinite(english))
        noun = Word(english)
        verb: list[Target] = [(est, (be,))]
        en = [pronoun, be]
        if length == 5:
            negation = Word("not")
            en.append(negation)
            verb = [
                ("n'" if elides(est) else "ne", (negation,)),
                *verb,
                ("pas", (negation,)),
            ]
        title = feminine if who == "she" else masculine
        return Phrase([*en, article, noun], [(il, (pronoun,)), *verb, (title, (noun,))])

    def sentence(self, length: int) -> Phrase:
        """Clauses of 3 to 14 words joined by conjunctions."""
        if length <= 12:
            return self.clause(length)
        first = self.clause(self.between(6, min(14, length - 4)))
        english, french = self.draw(lex.CONJUNCTIONS)
        rest = _subordinate(english, french, self.sentence(length - len(first.en) - 1))
        return Phrase(first.en + rest.en, first.fr + rest.fr)
