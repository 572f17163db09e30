/**
 * Frequent short words of languages in Latin script that the other languages seldom have: enough to detect which language a text is in,
 * not to read it.
 */
const FREQUENT: readonly (readonly [language: string, words: string])[] = [
  ["English", "the of and to in is that for it with as are this be by from or have not you which was were"],
  [
    "German",
    "der die das und ist nicht ein eine einen mit von zu den dem auf für im sich auch wie oder wird sind bei nach",
  ],
  [
    "French",
    "le la les des est et dans que qui pour sur au aux du ce cette sont pas avec par plus nous vous une",
  ],
  ["Spanish", "el los las y en por con para del se lo su una como que más pero este esta son está al es"],
  [
    "Italian",
    "il gli di che non è per sono della nel con una del dei delle alla da più anche come questo ha si",
  ],
  // Not `com`, which addresses of web pages have.
  ["Portuguese", "os um uma em do da não ao para que dos das por mais como são ou se foi pelo pela é"],
  [
    "Dutch",
    "het een van dat de en niet zijn voor met aan ook bij naar worden door over wordt deze maar als op",
  ],
  ["Polish", "nie się jest na do że z w i to jak dla są przez lub oraz po tym od który która"],
  ["Czech", "je se na že v a to s pro jako do nebo které který jsou by při podle také jeho"],
  ["Swedish", "och att det som en är av för med inte den på till ett om har från kan eller vid"],
  ["Danish", "og at det som en er af for med ikke den på til et om har fra kan eller ved der blev"],
  ["Turkish", "ve bir bu için ile da de çok daha olarak gibi olan en değil ise veya kadar sonra her"],
];

/** The same of near relatives: they only cast doubt on the others. */
const RELATIVES: typeof FREQUENT = [
  ["Catalan", "la els les amb és dels per va seva seu més aquest aquesta també fins quan"],
  ["Galician", "unha non polo pola ao coa cando súa seu ata das dos da do en os"],
];

/** Scripts that one language or a few use, by the name of what they say about a text. */
const SCRIPTS: readonly (readonly [language: string, script: RegExp])[] = [
  ["Japanese", /[\p{Script=Hiragana}\p{Script=Katakana}]/gu],
  ["Korean", /\p{Script=Hangul}/gu],
  ["Chinese", /\p{Script=Han}/gu],
  ["Russian or another language in Cyrillic script", /\p{Script=Cyrillic}/gu],
  ["Greek", /\p{Script=Greek}/gu],
  ["Arabic or another language in Arabic script", /\p{Script=Arabic}/gu],
  ["Hebrew", /\p{Script=Hebrew}/gu],
  ["Thai", /\p{Script=Thai}/gu],
  ["Hindi or another language in Devanagari script", /\p{Script=Devanagari}/gu],
];

const WORDS = languagesByWord(FREQUENT);
const ALL_WORDS = languagesByWord([...FREQUENT, ...RELATIVES]);

function languagesByWord(lists: typeof FREQUENT): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const [language, words] of lists) {
    // A single letter is a variable in code.
    for (const word of words.split(" ").filter(({ length }) => length > 1))
      found.set(word, [...(found.get(word) ?? []), language]);
  }
  return found;
}

/** The languages in which a lower-case word is frequent. */
export const LANGUAGE_WORDS: ReadonlyMap<string, readonly string[]> = WORDS;

/** Fewest words of a text that says something, and least share of them that are frequent: prose has a third, code less. */
const WORDS_MIN = 20;
const FREQUENT_SHARE_MIN = 0.1;
/** How many times as many frequent words as the next language's a text must have. */
const LEAD = 1.3;
/** Least share of a script in the letters. Japanese prose has half kana, and technical texts have names in Latin script. */
const SCRIPT_SHARE_MIN = 0.3;

/** Conditions before a language is named. */
interface Evidence {
  readonly known: typeof WORDS;
  readonly wordsMin: number;
  readonly frequentShareMin: number;
  readonly lead: number;
}

const LIKELY: Evidence = {
  known: WORDS,
  wordsMin: WORDS_MIN,
  frequentShareMin: FREQUENT_SHARE_MIN,
  lead: LEAD,
};
/** More of each: names and quotations of another language do not decide, and neither do languages that share words. */
const CERTAIN: Evidence = { known: ALL_WORDS, wordsMin: 40, frequentShareMin: 0.15, lead: 2 };

/**
 * Codes (ISO 639-1) of the languages that are named with certainty. Not among them: those of a script that several languages use, and
 * those with a near relative that is not known here (Danish and Norwegian, Czech and Slovak).
 */
const CODES: ReadonlyMap<string, string> = new Map([
  ["English", "en"],
  ["German", "de"],
  ["French", "fr"],
  ["Spanish", "es"],
  ["Italian", "it"],
  ["Portuguese", "pt"],
  ["Dutch", "nl"],
  ["Polish", "pl"],
  ["Swedish", "sv"],
  ["Turkish", "tr"],
  ["Japanese", "ja"],
  ["Korean", "ko"],
  ["Chinese", "zh"],
  ["Greek", "el"],
  ["Thai", "th"],
]);
/** Characters of a text that are read for its code: some 300 words, 0.05 ms. */
const SAMPLE_CHARS = 2000;
/** Ranges instead of properties, which take five times as long. */
const LATIN_WORD = /[a-z\u00DF-\u024F]+/g;
const BEYOND_LATIN = /[\u0370-\u1DFF\u2E80-\uFFFF]/;
const KANA = /[\p{Script=Hiragana}\p{Script=Katakana}]/u;

/** Returns the code of the language that the beginning of a text is certainly in; undefined if there is any doubt. Pure. */
export function certainLanguage(text: string): string | undefined {
  const sample = text.slice(0, SAMPLE_CHARS);
  const language = find(sample, CERTAIN);
  // Japanese may have few kana.
  if (language === "Chinese" && KANA.test(sample)) return undefined;
  return language && CODES.get(language);
}

/** Returns the language that a text is in, by its English name; undefined if it is too short, mixed, or in none of those known. Pure. */
export function languageOf(text: string): string | undefined {
  return find(text, LIKELY);
}

function find(text: string, { known, wordsMin, frequentShareMin, lead }: Evidence): string | undefined {
  const inScript = scriptOf(text);
  if (inScript !== undefined) return inScript.letters >= wordsMin ? inScript.language : undefined;
  const words = text.toLowerCase().match(LATIN_WORD) ?? [];
  if (words.length < wordsMin) return undefined;
  const counts = new Map<string, number>();
  for (const word of words)
    for (const language of known.get(word) ?? []) counts.set(language, (counts.get(language) ?? 0) + 1);
  const [first, second] = [...counts].toSorted(([, a], [, b]) => b - a);
  if (first === undefined || first[1] < frequentShareMin * words.length) return undefined;
  return first[1] >= lead * (second?.[1] ?? 0) ? first[0] : undefined;
}

/** Finds the script of a text that is not in Latin script, with its letters. */
function scriptOf(text: string): { readonly language: string; readonly letters: number } | undefined {
  if (!BEYOND_LATIN.test(text)) return undefined;
  const letters = text.match(/\p{L}/gu)?.length ?? 0;
  const found = SCRIPTS.find(
    ([, script]) => (text.match(script)?.length ?? 0) >= Math.max(1, SCRIPT_SHARE_MIN * letters),
  );
  return found && { language: found[0], letters };
}
