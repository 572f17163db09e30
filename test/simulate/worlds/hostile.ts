import type { Happening, Hostility, PageDeed } from "../history.ts";
import type { Random } from "../virtual/random.ts";
import { MINUTE_MS, without, withConditions, withHappenings, type UnkindWorld } from "./unkind-world.ts";

/** The longest lists of services that say nothing of the rest. */
const CAPS = [5, 20, 40];
const DAY_MS = 24 * 60 * MINUTE_MS;

/** Worlds of one hostile service each. */
export const HOSTILE_WORLDS: readonly UnkindWorld[] = [
  hostile("list-minutes-old", "a list shows what was minutes ago", (random) => ({
    listStaleMs: random.pick([2, 5, 10]) * MINUTE_MS,
  })),
  {
    ...hostile("list-of-all-owners", "a list shows the resources of all owners", () => ({})),
    change: (_, history) => withConditions(history, { hostility: { ignoresOwner: true }, strangers: true }),
  },
  hostile("odd-nulls", "optional fields are null", () => ({ odd: "nulls" })),
  hostile("odd-texts", "numbers and truths are texts", () => ({ odd: "texts" })),
  hostile("odd-numbers", "times and states are numbers", () => ({ odd: "numbers" })),
  hostile("odd-numeric-ids", "ids are numbers", () => ({ odd: "numeric-ids" })),
  hostile("odd-no-collection", "no answer names a collection", () => ({ odd: "no-collection" })),
  hostile("descriptions-lower-case", "descriptions are stored in lower case", () => ({
    descriptions: "lower-case",
  })),
  hostile("descriptions-escaped", "descriptions are stored as HTML", () => ({ descriptions: "escaped" })),
  hostile("descriptions-trimmed", "descriptions are trimmed", () => ({ descriptions: "trimmed" })),
  unmarked("descriptions-cut", "descriptions are cut at 40 characters", "cut"),
  unmarked("descriptions-dropped", "descriptions are not stored", "dropped"),
  hostile("untitled", "every title is stored as Untitled", () => ({ untitled: true })),
  hostile("put-ignored", "an update is answered 200 and changes nothing", () => ({ puts: "ignored" })),
  hostile("put-copied", "an update makes another resource in place of the old one", () => ({
    puts: "copied",
  })),
  hostile("put-one-id", "every update is answered with the same _id", () => ({ puts: "one-id" })),
  hostile("delete-forbidden", "deletes are answered 403", () => ({ deletes: "forbidden" })),
  hostile("delete-ignored", "a delete is answered 200 and deletes nothing", () => ({ deletes: "ignored" })),
  {
    ...hostile("upsert-by-title", "a create changes the resource of that title", () => ({})),
    // Nothing that a client sends keeps such a service from changing what others have there.
    change: (_, history) =>
      without(
        withConditions(history, { hostility: { upserts: true }, strangers: false, workMs: 0 }),
        ({ kind }) => kind === "foreign",
      ),
  },
  {
    name: "restored-service",
    does: "the service becomes what it was some time ago",
    share: 0.05,
    passes: true,
    change: (random, history, endMs) => {
      const { mounted, slow } = history.conditions;
      // What must be noticed at once is not where only an audit can notice it.
      if (mounted === true || slow?.quickMs !== undefined) return history;
      return withHappenings(history, [
        {
          atMs: random.between(MINUTE_MS, Math.max(2 * MINUTE_MS, endMs)),
          kind: "restore",
          agoMs: random.pick([MINUTE_MS, 10 * MINUTE_MS, DAY_MS]),
        },
      ]);
    },
  },
  {
    name: "by-hand",
    does: "a person changes, copies and deletes resources at the service's own page",
    share: 0.05,
    passes: true,
    change: (random, history, endMs) => {
      const { mounted, slow, hostility } = history.conditions;
      // What has no list, or none that shows titles and descriptions, shows nothing of that.
      const isShown = hostility?.odd !== "no-collection" && hostility?.odd !== "nulls";
      // Where updates are lost, nothing undoes it.
      const isUndone = hostility?.puts !== "ignored";
      if (mounted === true || slow?.quickMs !== undefined || !isShown || !isUndone) return history;
      const isKnown = random.chance(0.5);
      const deeds = [...COPYING, ...(isKnown ? CHANGING : [])];
      const happenings = Array.from({ length: 1 + random.below(6) }, (): Happening => {
        const atMs = random.between(MINUTE_MS, Math.max(2 * MINUTE_MS, endMs));
        return { atMs, kind: "page", deed: random.pick(deeds), nth: random.below(1000) };
      });
      // A new ledger, and one without an answer to a create, knows a resource by its marker, and its text by that.
      return withHappenings(isKnown ? without(history, isUnanswered) : history, happenings);
    },
  },
  {
    name: "other-machine",
    does: "the daemon goes on on another machine, with a copy of the state folder or without",
    share: 0.05,
    passes: true,
    change: (random, history, endMs) => {
      const { second, mounted, hostility } = history.conditions;
      // A service that never names a collection cannot be asked for a list.
      if (second !== undefined || mounted === true || hostility?.odd === "no-collection") return history;
      if (history.happenings.some(isChangeByHand)) return history;
      return withHappenings(
        history,
        Array.from({ length: 1 + random.below(2) }, () => ({
          atMs: random.between(MINUTE_MS, Math.max(2 * MINUTE_MS, endMs)),
          kind: "elsewhere",
          state: random.pick(["copied", "new"]),
        })),
      );
    },
  },
  {
    ...hostile("list-capped", "a list shows the oldest resources, of more", () => ({})),
    change: (random, history) => {
      const listMax = random.pick(CAPS);
      // A search finds what the list omits by its own words.
      const files = Array.from({ length: listMax + 1 + random.below(listMax) }, (_, index): Happening => {
        const [path, text] = [`many/${index}.txt`, `words${index} of this file`];
        // Only by more documents than it shows can a list be known to be cut off.
        return { atMs: 0, isGiven: true, kind: "write", path, text };
      });
      const lostMs = random.between(2, 20) * MINUTE_MS;
      const lost: readonly Happening[] = [
        { atMs: lostMs, kind: "write", path: "many/last.txt", text: "words of the last file" },
        { atMs: lostMs + MINUTE_MS, kind: "crash", effects: 1, kept: "none", restMs: MINUTE_MS, next: "run" },
      ];
      // A service that must first name the collection gets one file more, which its list never shows. Searches find no work.
      const capped = withConditions(history, { hostility: { listMax }, collections: true, workMs: 0 });
      // A part of the list does not show what the service lost, what it made twice, and what a person did there.
      const calm = without(capped, (each) => UNSHOWN.has(each.kind) || isTwice(each));
      return withHappenings(calm, [...files, ...(random.chance(0.5) ? lost : [])]);
    },
  },
];

const UNSHOWN: ReadonlySet<Happening["kind"]> = new Set(["reset", "restore", "root", "page"]);
const COPYING: readonly PageDeed[] = ["copy", "copy-edited", "copy-edited", "delete"];
const CHANGING: readonly PageDeed[] = ["edit", "edit", "describe", "unmark", "unmark"];

function isChangeByHand(happening: Happening): boolean {
  return happening.kind === "page" && CHANGING.includes(happening.deed);
}

function isTwice(happening: Happening): boolean {
  return happening.kind === "fault" && happening.fault === "twice";
}

function isUnanswered({ kind }: Happening): boolean {
  return ["crash", "kills", "stop", "fault", "storm"].includes(kind);
}

function hostile(name: string, does: string, hostility: (random: Random) => Hostility): UnkindWorld {
  return {
    name,
    does,
    share: 0.02,
    passes: true,
    change: (random, history) => withConditions(history, { hostility: hostility(random) }),
  };
}

/** The ledger may be lost, without which nobody knows whose the resources are. */
function unmarked(name: string, does: string, descriptions: "cut" | "dropped"): UnkindWorld {
  return {
    ...hostile(name, `${does}; the ledger may be lost`, () => ({})),
    change: (random, history, endMs) => {
      const unkind = withConditions(history, { hostility: { descriptions } });
      const atMs = random.between(MINUTE_MS, Math.max(2 * MINUTE_MS, endMs));
      const lost: readonly Happening[] = [
        // Something has to be under way for the crash to come.
        { atMs, kind: "write", path: "n/last.txt", text: "words before the crash" },
        { atMs, kind: "crash", effects: 1, kept: "none", restMs: 1000, next: "run" },
      ];
      return random.chance(0.5) ? withHappenings(unkind, lost) : unkind;
    },
  };
}
