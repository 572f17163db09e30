/**
 * Frequent short words of languages in Latin script that the other languages seldom have: enough to tell which language a text is in,
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

const WORDS = new Map<string, string[]>();
for (const [language, words] of FREQUENT) {
  // A single letter is a variable in code.
  for (const word of words.split(" ").filter(({ length }) => length > 1))
    WORDS.set(word, [...(WORDS.get(word) ?? []), language]);
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

/** Returns the language that a text is in, by its English name; undefined if it is too short, mixed, or in none of those known. Pure. */
export function languageOf(text: string): string | undefined {
  const letters = text.match(/\p{L}/gu)?.length ?? 0;
  if (letters === 0) return undefined;
  const inScript = SCRIPTS.find(
    ([, script]) => (text.match(script)?.length ?? 0) / letters >= SCRIPT_SHARE_MIN,
  );
  if (inScript !== undefined) return letters >= WORDS_MIN ? inScript[0] : undefined;
  const words = text.toLowerCase().match(/\p{L}+/gu) ?? [];
  if (words.length < WORDS_MIN) return undefined;
  const counts = new Map<string, number>();
  for (const word of words)
    for (const language of WORDS.get(word) ?? []) counts.set(language, (counts.get(language) ?? 0) + 1);
  const [first, second] = [...counts].toSorted(([, a], [, b]) => b - a);
  if (first === undefined || first[1] < FREQUENT_SHARE_MIN * words.length) return undefined;
  return first[1] >= LEAD * (second?.[1] ?? 0) ? first[0] : undefined;
}

/** Fewest texts whose language is known before most of them say something about all. */
const TEXTS_MIN = 3;

/** Returns the language that more than half of the texts with a known one are in; undefined if there is none, or too few are known. Pure. */
export function mainLanguage(texts: readonly string[]): string | undefined {
  const known = texts.flatMap((text) => languageOf(text) ?? []);
  if (known.length < Math.min(TEXTS_MIN, texts.length)) return undefined;
  const counts = [...Map.groupBy(known, (language) => language)];
  return counts.find(([, same]) => same.length > known.length / 2)?.[0];
}
