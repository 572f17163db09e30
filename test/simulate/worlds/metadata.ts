import type { Happening } from "../history.ts";
import type { Random } from "../virtual/random.ts";
import { DESCRIPTION_FILE } from "../world/metadata.ts";
import { MINUTE_MS, withConditions, withHappenings, type UnkindWorld } from "./unkind-world.ts";

/** Worlds whose service takes the metadata of files. */
export const METADATA_WORLDS: readonly UnkindWorld[] = [
  {
    name: "metadata",
    does: "the service takes metadata, perhaps only from some time on; tags, folders, descriptions and rules change",
    share: 0.15,
    passes: true,
    change: (random, history, endMs) => {
      const metadataFromMs = random.pick([0, 0, random.between(0, endMs), endMs]);
      const unkind = withConditions(history, { collections: true, metadataFromMs });
      const happenings: Happening[] = Array.from({ length: 4 + random.below(12) }, () =>
        drawChange(random, random.between(0, endMs)),
      );
      if (random.chance(0.4)) happenings.push(...drawRule(random, random.between(0, endMs)));
      return withHappenings(unkind, happenings);
    },
  },
];

const FOLDERS = ["", "a/", "k/", "k/l/"];
const NOTES = ["n.md", "m.md", "o.md"];

function drawChange(random: Random, atMs: number): Happening {
  const folder = random.pick(FOLDERS);
  const roll = random.next();
  if (roll < 0.5) return { atMs, kind: "write", path: folder + random.pick(NOTES), text: drawNote(random) };
  if (roll < 0.65)
    return { atMs, kind: "rename", path: random.pick(["a", "k", "k/l"]), to: random.pick(["k", "a/l", "p"]) };
  if (roll < 0.8)
    return { atMs, kind: "write", path: folder + DESCRIPTION_FILE, text: `About ${random.below(3)}\n` };
  if (roll < 0.9) {
    return {
      atMs,
      kind: "rewrite",
      path: folder + DESCRIPTION_FILE,
      manner: random.pick(["emptied", "in-steps", "renamed-away", "renamed-over", "removed"]),
      forMs: random.pick([50, 1000]),
      text: `About\nmuch ${random.below(3)}\n`,
    };
  }
  return { atMs, kind: "remove", paths: [folder + DESCRIPTION_FILE] };
}

/** Few texts, so that often nothing but a tag differs. */
function drawNote(random: Random): string {
  const tags = random.pick(["one", "one, two", "three"]);
  const lines = [`tags: ${tags}`];
  if (random.chance(0.5)) lines.push(`status: ${random.pick(["draft", "done"])}`);
  if (random.chance(0.5)) lines.push(`topic: ${random.pick(["stars", "boats"])}`);
  return `---\n${lines.join("\n")}\n---\n# Note ${random.below(2)}\n\ntext ${random.below(3)}`;
}

/** The configuration changes, and with it the metadata of every file. */
function drawRule(random: Random, atMs: number): Happening[] {
  return [
    { atMs, kind: "configure", team: random.pick(["red", "blue"]) },
    { atMs: atMs + random.between(1000, MINUTE_MS), kind: "stop", restMs: 1000, next: "run" },
  ];
}
