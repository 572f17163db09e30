/** Words and signs of a shingle: enough that two texts about one subject share few. */
const SHINGLE = 3;
/** Least share of common shingles (Jaccard) of texts that count as nearly the same: some three changed words in a hundred. */
const SIMILARITY_MIN = 0.9;
/** Smallest shingle hashes by which candidates are found; texts of that similarity miss all with a chance of 10⁻⁸. */
const SKETCH = 8;

/**
 * Returns for each text the index of the first text that it nearly equals, or its own. Only first texts are compared with, so
 * that the answer for a text depends on those before it alone. Texts nearly equal each other if they share `SIMILARITY_MIN` of
 * their shingles, without regard to case, white space and Markdown's marks, and have the same numbers: a table of other
 * figures, or another version's, is another text. Pure.
 */
export function firstOfEach(texts: readonly string[]): number[] {
  const firsts: (Shingled & { readonly at: number })[] = [];
  const bySketch = new Map<number, number[]>();
  return texts.map((text, at) => {
    const own = shingle(text);
    const sketch = [...Uint32Array.from(own.hashes).sort().subarray(0, SKETCH)];
    const candidates = [...new Set(sketch.flatMap((hash) => bySketch.get(hash) ?? []))].toSorted(
      (a, b) => a - b,
    );
    for (const index of candidates) {
      const first = firsts[index];
      if (first !== undefined && isNearlyEqual(first, own)) return first.at;
    }
    for (const hash of sketch) bySketch.set(hash, [...(bySketch.get(hash) ?? []), firsts.length]);
    firsts.push({ ...own, at });
    return at;
  });
}

interface Shingled {
  readonly hashes: ReadonlySet<number>;
  readonly numbers: string;
}

function shingle(text: string): Shingled {
  const folded = text.normalize("NFC").toLowerCase();
  const words = (folded.match(PARTS) ?? []).map(hashOf);
  const hashes = new Set<number>();
  for (let at = 0; at <= Math.max(0, words.length - SHINGLE); at++) {
    let hash = 0;
    for (let word = at; word < at + SHINGLE; word++)
      hash = Math.imul(hash ^ (words[word] ?? 0), FNV_PRIME) + 1;
    hashes.add(hash >>> 0);
  }
  return { hashes, numbers: (folded.match(NUMBERS) ?? []).toSorted().join(" ") };
}

/** Words with a digit, from the first one on. */
const NUMBERS = /\p{N}[\p{L}\p{N}\p{M}]*/gu;

/** Words, and each other sign but those of Markdown's headings, emphasis, code and tables. */
const PARTS = /[\p{L}\p{N}\p{M}]+|[^\s#*_`|]/gu;

function isNearlyEqual(a: Shingled, b: Shingled): boolean {
  if (a.numbers !== b.numbers) return false;
  let common = 0;
  for (const hash of b.hashes) if (a.hashes.has(hash)) common++;
  return common >= SIMILARITY_MIN * (a.hashes.size + b.hashes.size - common);
}

const FNV_PRIME = 0x01000193;

/** FNV-1a, 32 bits. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), FNV_PRIME);
  return hash >>> 0;
}
