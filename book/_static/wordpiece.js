// WordPiece in the browser: one implementation for all pages that cut what a reader types into pieces.
// The algorithm is that of course_lib/wordpiece/normalize.py and course_lib/wordpiece/tokenizer.py. What single characters are and
// become (space, punctuation, an accent that is dropped, lower case) stands in tables that course_lab/ch04_wordpiece/tokenizer_explorer.py
// writes with the vocabulary: the Unicode version of the browser has no say.
// JavaScript counts text in UTF-16 units and Python in code points; everything here counts in code points.
"use strict";

globalThis.courseWordPiece = (() => {
  // Whether a code point lies in one of the sorted, closed ranges [first, last, first, last, ...].
  function within(ranges, point) {
    let low = 0, high = ranges.length / 2;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (point > ranges[2 * middle + 1]) low = middle + 1;
      else high = middle;
    }
    return 2 * low < ranges.length && ranges[2 * low] <= point;
  }

  const HANGUL = [0xac00, 0xd7a3]; // syllables, which arithmetic takes apart, the same in every version of Unicode

  // What a character becomes when it is decomposed, its accents dropped and the rest lower-cased: often itself.
  // The order of spacing marks after a letter, a matter of a dozen characters of musical notation, stays as typed.
  function simplified(character, { letters }) {
    if (within(HANGUL, character.codePointAt(0))) return Array.from(character.normalize("NFD"));
    return Array.from(letters[character] ?? character);
  }

  // Clean, put spaces around Chinese characters, simplify. Each character keeps its place in the text.
  function normalise(characters, first, classes) {
    const normal = [];
    characters.forEach((original, place) => {
      const point = original.codePointAt(0);
      const keep = (character) => normal.push({ character, start: first + place, end: first + place + 1 });
      if (within(classes.removed, point)) return;
      if (within(classes.space, point)) { keep(" "); return; }
      const chinese = within(classes.chinese, point);
      if (chinese) keep(" ");
      simplified(original, classes).forEach(keep);
      if (chinese) keep(" ");
    });
    return normal;
  }

  // Words end at spaces; a punctuation mark is a word of its own.
  function splitWords(normal, classes) {
    const words = [];
    let word = [];
    const finish = () => { if (word.length) words.push(word); word = []; };
    for (const letter of normal) {
      const point = letter.character.codePointAt(0);
      if (within(classes.space, point)) finish();
      else if (within(classes.punctuation, point)) { finish(); words.push([letter]); }
      else word.push(letter);
    }
    finish();
    return words;
  }

  // The longest piece of the vocabulary that begins at a place in a word, or null.
  function longestMatch(word, start, tokenizer) {
    for (let end = word.length; end > start; end -= 1) {
      const letters = word.slice(start, end).map((letter) => letter.character).join("");
      const token = start ? tokenizer.prefix + letters : letters;
      if (tokenizer.ids.has(token)) return { token, end };
    }
    return null;
  }

  // Greedy longest match first; one stretch without a match makes the whole word unknown.
  function encodeWord(word, tokenizer) {
    const place = (token, start, end) =>
      ({ token, id: tokenizer.ids.get(token), start: word[start].start, end: word[end - 1].end });
    const unknown = [place(tokenizer.unknown, 0, word.length)];
    if (word.length > tokenizer.longest) return unknown;
    const pieces = [];
    for (let start = 0; start < word.length;) {
      const match = longestMatch(word, start, tokenizer);
      if (match === null) return unknown;
      pieces.push(place(match.token, start, match.end));
      start = match.end;
    }
    return pieces;
  }

  // Special tokens that stand in the text are taken out before anything else; the rest is words and pieces.
  function encode(text, tokenizer) {
    const special = (token, start, end) => ({ token, id: tokenizer.ids.get(token), start, end, special: true });
    const pieces = [];
    let words = 0, first = 0;
    for (const part of text.split(tokenizer.specialPattern)) { // the pattern's group keeps the tokens as parts
      const characters = Array.from(part);
      if (tokenizer.special.includes(part)) {
        pieces.push(special(part, first, first + characters.length));
        words += 1;
      } else {
        const found = splitWords(normalise(characters, first, tokenizer.classes), tokenizer.classes);
        pieces.push(...found.flatMap((word) => encodeWord(word, tokenizer)));
        words += found.length;
      }
      first += characters.length;
    }
    return { words, pieces: [special(tokenizer.first, 0, 0), ...pieces, special(tokenizer.last, 0, 0)] };
  }

  // From the data that `tokenizer_data` in course_lab/ch04_wordpiece/tokenizer_explorer.py writes.
  function prepare(data) {
    const escaped = data.special.map((token) => token.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    return {
      ...data,
      ids: new Map(data.vocabulary.map((token, id) => [token, id])),
      specialPattern: new RegExp(`(${escaped.join("|")})`, "u"),
    };
  }

  return { prepare, encode };
})();
