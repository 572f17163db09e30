import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** What a generated tree of Markdown files looks like. */
export interface TreeShape {
  readonly files: number;
  readonly folders: number;
  /** Mean size of a file in bytes; single files vary between a fifth and nearly twice of it. */
  readonly meanBytes: number;
}

/** The tree of the documented figures: 20,000 files, 400 folders, 93 MB. */
export const LARGE_TREE: TreeShape = { files: 20_000, folders: 400, meanBytes: 4650 };

/** Distinct words of the generated texts. Their frequencies follow Zipf's law, as in real prose. */
const VOCABULARY_WORDS = 20_000;

/** Writes the tree below `root` (made new). The same shape gives the same bytes. Returns the bytes written. */
export function writeTree(root: string, shape: TreeShape): number {
  const random = mulberry32(0x5eed);
  const words = zipfWords(random);
  let bytes = 0;
  for (let folder = 0; folder < shape.folders; folder++)
    mkdirSync(join(root, folderName(folder)), { recursive: true });
  for (let file = 0; file < shape.files; file++) {
    const text = markdown(file, shape.meanBytes * (0.2 + 1.6 * random()), words, random);
    writeFileSync(join(root, folderName(file % shape.folders), `document-${file}.md`), text);
    bytes += text.length;
  }
  return bytes;
}

/** The texts of such a tree one after the other, without end: for what needs no files. The same each time. */
export function* makeTexts(meanBytes: number): Generator<string, never> {
  const random = mulberry32(0x5eed);
  const words = zipfWords(random);
  for (let file = 0; ; file++) yield markdown(file, meanBytes * (0.2 + 1.6 * random()), words, random);
}

/** The word of the generated texts that is the so-manieth most frequent one, from 0. */
export function wordOfRank(rank: number): string {
  return COMMON[rank] ?? spell(rank);
}

/** Folders nest two deep, twenty to a parent. */
function folderName(index: number): string {
  return join(`part-${Math.floor(index / 20)}`, `chapter-${index % 20}`);
}

function markdown(seed: number, bytes: number, word: () => string, random: () => number): string {
  let text = `# Document ${seed} on ${word()} ${word()}\n\n`;
  while (text.length < bytes) {
    const kind = random();
    if (kind < 0.12) text += `## ${word()} ${word()}\n\n`;
    else if (kind < 0.22)
      text += `- ${sentence(word, random)}\n- ${sentence(word, random)}\n- ${sentence(word, random)}\n\n`;
    else if (kind < 0.26) text += `\`\`\`sh\n${word()} --${word()} ${word()}\n\`\`\`\n\n`;
    else text += `${sentence(word, random)} ${sentence(word, random)} ${sentence(word, random)}\n\n`;
  }
  return text;
}

function sentence(word: () => string, random: () => number): string {
  const length = 6 + Math.floor(random() * 14);
  const parts = Array.from({ length }, word);
  return `${parts.join(" ")}.`;
}

/** Draws words by Zipf's law with exponent 1: the word of rank r comes with weight 1 / r. */
function zipfWords(random: () => number): () => string {
  const vocabulary = Array.from({ length: VOCABULARY_WORDS }, (_, rank) => COMMON[rank] ?? spell(rank));
  const cumulative = new Float64Array(VOCABULARY_WORDS);
  let sum = 0;
  for (let rank = 0; rank < VOCABULARY_WORDS; rank++) {
    sum += 1 / (rank + 1);
    cumulative[rank] = sum;
  }
  return () => {
    const target = random() * sum;
    let low = 0;
    let high = VOCABULARY_WORDS - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((cumulative[middle] ?? 0) < target) low = middle + 1;
      else high = middle;
    }
    return vocabulary[low] ?? "";
  };
}

const COMMON = (
  "the of and to a in is that for it as with on be by this are or an from at not have which one you all can use " +
  "when will more each other file data time system value name set new work number user first line"
).split(" ");
const SYLLABLES = "ba ce di fo gu la me ni po ru sa te vi wo xu ka ler min tor nas vel dor pin gal".split(
  " ",
);

/** A pronounceable word for a rank; different ranks give different words. */
function spell(rank: number): string {
  let text = "";
  for (let rest = rank; rest > 0; rest = Math.floor(rest / SYLLABLES.length))
    text += SYLLABLES[rest % SYLLABLES.length];
  return text;
}

/** A small seeded generator (mulberry32, public domain): equal seeds give equal numbers in [0, 1). */
export function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
