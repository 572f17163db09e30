import { z } from "zod";
import type { Finding } from "../../lib/finding.ts";
import { RULES, type Rule } from "./rules.ts";

const RESTORE = "Restore the database from a copy; documents that changed since then have to be sent again.";
const SEND_AGAIN = "Send the text of the document again; if nobody has it, restore the database from a copy.";
const INDEX_AGAIN =
  "Change the title of the document with `PUT /api/rag/resource/ID`, and change it back: that writes its index entries and vectors anew.";
const HARMLESS = "Nothing is lost, and nothing has to be done: searches pass over it.";

/** What may be wrong in a store that a service checks while it runs, and what a person does about it. */
const CHECKED = {
  missingChunks: { ...RULES.missingChunks, remedy: SEND_AGAIN },
  strayChunks: { ...RULES.strayChunks, remedy: RESTORE },
  wrongWords: { ...RULES.wrongWords, remedy: INDEX_AGAIN },
  missingWords: {
    check: "store-words",
    words: "documents have chunks that are not in the index of words, so that searches miss them",
    remedy: INDEX_AGAIN,
  },
  strayWords: { ...RULES.strayWords, remedy: RESTORE },
  damagedParts: {
    check: "store-words",
    words: "parts of the index of words differ from what was written, so that searches of the owner fail",
    remedy: `They have too many chunks to be made anew while others write. ${RESTORE}`,
  },
  wrongPages: { ...RULES.wrongPages, remedy: RESTORE },
  rebuilt: {
    check: "store-words",
    words: "parts of the index of words were wrong, and were made anew from the documents",
    remedy: "Searches find everything again. Look for the cause: a disk, memory, or a change by hand.",
  },
  strayVectors: { ...RULES.strayVectors, remedy: HARMLESS },
  wrongVectors: { ...RULES.wrongVectors, remedy: INDEX_AGAIN },
  unknownFiles: {
    ...RULES.unknownFiles,
    remedy: "The document stays searchable. Upload the file again to download it, or to read it anew.",
  },
  missingFiles: {
    check: "store-files",
    words: "uploaded files are missing",
    remedy: "The documents made from it stay searchable. Upload the file again, or restore it from a copy.",
  },
  unreadable: {
    check: "store-structure",
    words: "parts of the database cannot be read",
    remedy: `The log of PostgreSQL names the table and the block. ${RESTORE}`,
  },
} as const satisfies Record<string, Rule & { readonly remedy: string }>;

export type CheckedRule = keyof typeof CHECKED;

const DamageWire = z.object({
  rule: z.enum(Object.keys(CHECKED) as [CheckedRule, ...CheckedRule[]]), // it has several keys
  subject: z.string(),
  account: z.string(),
  tier: z.string().optional(),
  owner: z.string().optional(),
});

/** Damage that a check found. `subject` names the document, the file, or the part of the index. */
export type Damage = Readonly<z.infer<typeof DamageWire>>;

/** Returns the parts of a message about damage. */
export function describeDamage({ rule, subject }: Damage): {
  readonly message: string;
  readonly remedy: string;
} {
  const { words, remedy } = CHECKED[rule];
  return { message: `the store ${rule === "rebuilt" ? "was" : "is"} damaged: ${words}: ${subject}`, remedy };
}

/** Damage that a record names; more is only counted. */
const NAMED_MAX = 100;

const PassWire = z.object({ startedMs: z.number(), found: z.number(), damage: z.array(DamageWire) });
const RecordWire = z.object({
  /** The pass that runs, and the position in the store from which it goes on; undefined: it has checked everything. */
  now: PassWire,
  position: z.string().optional(),
  /** The last complete pass. */
  last: PassWire.extend({ endedMs: z.number() }).optional(),
});

/** The progress and the results of a check, which the processes of a store share. */
export type CheckRecord = Readonly<z.infer<typeof RecordWire>>;

/** Reads a stored record. Undefined: there is none, or another version wrote it. */
export function readRecord(text: string | undefined): CheckRecord | undefined {
  if (text === undefined) return undefined;
  const { data } = RecordWire.safeParse(JSON.parse(text));
  return data;
}

/** Returns the record of a pass that begins. */
export function beginPass(before: CheckRecord | undefined, nowMs: number): CheckRecord {
  return { now: { startedMs: nowMs, found: 0, damage: [] }, position: "", last: before?.last };
}

/** Adds the result of a step to the record. Returns the damage that neither this pass nor the last one has named before. */
export function afterStep(
  record: CheckRecord,
  found: readonly Damage[],
  next: string | undefined,
  nowMs: number,
): { readonly record: CheckRecord; readonly fresh: readonly Damage[] } {
  const { now, last } = record;
  const keys = new Set(now.damage.map(keyOf));
  const before = new Set(last?.damage.map(keyOf));
  const others = found.filter((each) => !keys.has(keyOf(each)));
  const named = others.slice(0, Math.max(0, NAMED_MAX - now.damage.length));
  const pass = { ...now, found: now.found + others.length, damage: [...now.damage, ...named] };
  return {
    record: {
      now: pass,
      position: next,
      last: next === undefined ? { ...pass, endedMs: nowMs } : last,
    },
    fresh: named.filter((each) => !before.has(keyOf(each))),
  };
}

/** Returns the record without the damage that `isGone`. */
export function withoutDamage(record: CheckRecord, isGone: (damage: Damage) => boolean): CheckRecord {
  const left = (all: readonly Damage[]): Damage[] => all.filter((each) => !isGone(each));
  const { now, last } = record;
  return {
    ...record,
    now: { ...now, damage: left(now.damage) },
    ...(last && { last: { ...last, damage: left(last.damage) } }),
  };
}

/** Returns how much damage is known: that of the last pass, or of this one if it has found more. */
export function foundIn({ now, last }: CheckRecord): number {
  return Math.max(now.found, last?.found ?? 0);
}

/** Damage of one rule that a finding names. */
const SHOWN_MAX = 3;

/** Describes what a check found, one finding for each rule. `subject` names the store. */
export function findingsIn({ now, last }: CheckRecord, subject: string): Finding[] {
  const known = new Map([...(last?.damage ?? []), ...now.damage].map((each) => [keyOf(each), each]));
  return [...Map.groupBy(known.values(), ({ rule }) => rule)].map(([rule, damage]) => {
    const { check, words, remedy } = CHECKED[rule];
    const shown = damage
      .slice(0, SHOWN_MAX)
      .map(({ subject: of, account, tier, owner }) =>
        [of, `account ${account}`, ...(owner === undefined ? [] : [`owner ${owner}, ${tier}`])].join(", "),
      );
    const message = `${words}: ${shown.join("; ")}${damage.length > SHOWN_MAX ? "; …" : ""}`;
    return { check, level: rule === "rebuilt" ? "warning" : "damage", subject, message, remedy };
  });
}

function keyOf({ rule, subject, account, tier, owner }: Damage): string {
  return JSON.stringify([rule, subject, account, tier, owner]);
}

/** The result of one step of a check. */
export interface CheckStep {
  readonly damage: readonly Damage[];
  /** Recorded files, whose bytes the caller compares. */
  readonly files: readonly { readonly token: string; readonly name: string; readonly account: string }[];
  /** Where the next step begins; undefined: everything was checked. */
  readonly next: string | undefined;
}

/** A check of a store that other work goes on in, in small steps. */
export interface DamageCheck {
  /** Checks the part of the store from a position on, in one snapshot. The first position is empty. Changes nothing but what it can rebuild. */
  step(position: string): Promise<CheckStep>;
  record(): Promise<CheckRecord | undefined>;
  save(record: CheckRecord): Promise<void>;
}
