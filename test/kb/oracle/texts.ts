import type { Chance } from "../../crash/chance.ts";

const NAMES =
  "harbour pump valve ladder engine lantern barrel compass anchor rudder impeller bilge tide keel mast".split(
    " ",
  );
const VERBS =
  "close opens repair repaired repairing wind winds carry carried measure leak leaking empty".split(" ");
/** Words that most texts hold, and words that say nothing. */
const COMMON = "water boat water boat the the the of of and in with for to is".split(" ");
/** Folded, stemmed or divided in some way of their own. */
const ODD = [
  "Über",
  "straße",
  "naïve",
  "東京湾",
  "水",
  "한국어",
  "e4",
  "7",
  "O’Brien",
  "ﬁlter",
  "co-operate",
];

/** Words by which a text may be searched for. */
export function someWords(chance: Chance, count: number): string {
  return Array.from({ length: count }, () => {
    const drawn = chance.next();
    if (drawn < 0.4) return chance.pick(COMMON);
    if (drawn < 0.75) return chance.pick(NAMES);
    return chance.pick(drawn < 0.93 ? VERBS : ODD);
  }).join(" ");
}

/** Markdown of a few paragraphs, some under headings. */
export function someText(chance: Chance): string {
  const paragraphs = Array.from({ length: 1 + chance.below(4) }, () => {
    const sentences = Array.from(
      { length: 1 + chance.below(3) },
      () => `${someWords(chance, 3 + chance.below(7))}.`,
    );
    return sentences.join(" ");
  });
  return paragraphs
    .flatMap((paragraph) =>
      chance.happens(0.2)
        ? [`${"#".repeat(1 + chance.below(3))} ${someWords(chance, 2)}`, paragraph]
        : [paragraph],
    )
    .join("\n\n");
}
