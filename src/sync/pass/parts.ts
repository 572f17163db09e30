import { setImmediate as nextTurn } from "node:timers/promises";
import type { SyncConfig } from "../../config/schema/sync.ts";
import type { ActionContext, ActionSource } from "../actions/context.ts";
import type { SourceRow } from "../ledger/sources/rows.ts";
import { type BrakeFacts, isSameRoot, mayHold, REPLACED_FILES_MIN } from "../plan/brakes.ts";
import type { KnownFile, Scan } from "../plan/model.ts";
import type { Rules } from "../rules/rules.ts";
import type { BusyPaths } from "../agenda/jobs.ts";
import type { PathStates } from "../agenda/path-states.ts";
import { type Compared, openComparison } from "./compare.ts";
import { openDeletes, type Deletes, type RootHalt } from "./deletes.ts";
import type { SourceFiles } from "./moved-files.ts";

/** Dependencies of passes on their source. */
export interface PassOptions {
  readonly source: Pick<ActionSource, "id" | "root" | "rules" | "rulesKey" | "checkAgain">;
  readonly context: Pick<ActionContext, "ledger" | "now" | "moved" | "report" | "trash" | "timing">;
  readonly sync: SyncConfig;
  readonly once: boolean;
  readonly states: PathStates;
  readonly signal: AbortSignal;
}

/** Above this number of paths, a scan of the whole source is cheaper. */
export const PATHS_MAX = 20_000;

/** State that all passes of a source share. */
export interface PassParts {
  readonly scanning: { readonly signal: AbortSignal; readonly onSlice: () => void };
  readonly judging: PassParts["scanning"] & { readonly judgesMounts: boolean };
  readonly comparison: ReturnType<typeof openComparison>;
  readonly sourceFiles: SourceFiles;
  readonly deletes: Deletes;
}

/** Opens what all passes of a source share. */
export function openParts({ source, context, sync, once, states, signal }: PassOptions): PassParts {
  const { ledger, now, moved, timing } = context;
  const scanning = { signal, onSlice: moved };
  const keepTries = context.trash?.tries ?? 0;
  return {
    scanning,
    judging: { ...scanning, judgesMounts: true },
    comparison: openComparison({ source, context, states, signal }),
    sourceFiles: { source: source.id, rules: source.rules, ledger, signal, moved },
    deletes: openDeletes({
      source: source.id,
      keeps: source.rules.source.deletes === "never",
      ledger,
      sync,
      states,
      now,
      once,
      keepTries,
      timing,
    }),
  };
}

/** Runs with one snapshot of what is in flight, so that what is decided by it also begins by it. */
export async function withBusy<T>(
  states: Pick<PathStates, "busyPaths">,
  run: (busy: BusyPaths) => Promise<T>,
): Promise<T> {
  const busy = states.busyPaths();
  try {
    return await run(busy);
  } finally {
    busy.close();
  }
}

/** Returns the facts for the brakes, including what the rules leave out. */
export async function factsOf(
  rules: Rules,
  deletes: Deletes,
  scan: Scan,
  before: SourceRow,
  { gone, missingBusy, missingNew: missingAnew, hidden }: Compared,
): Promise<BrakeFacts> {
  const { root: identity } = scan;
  // A former process may have sent files of the folder that was here then.
  const missingNew = missingAnew + (isSameRoot(before.root, identity) ? 0 : deletes.missingInDoubt(scan));
  const isSure = identity?.born === true || gone.length < REPLACED_FILES_MIN;
  const madeLately = isSure ? undefined : deletes.madeLately();
  const others = new Set(gone.filter(({ path }) => rules.isInner(path)).map(({ id }) => id));
  const facts = deletes.facts(before, { madeLately, missingBusy, missingNew, hidden, others });
  return mayHold(gone, facts) ? { ...facts, leftOut: await leftOutOf(rules, gone) } : facts;
}

/** Explains why a folder's root has no identity. */
export function rootless(
  { unreadable }: Pick<Scan, "unreadable">,
  { source: { unit } }: Pick<Rules, "source">,
): RootHalt {
  const error = unreadable.find(({ path }) => path === "")?.code;
  if (error !== undefined) return { code: "unreadable", reason: `the folder cannot be read: ${error}` };
  // Nothing that appears at its path is visible before that unit is restarted.
  return unit === undefined
    ? { code: "missing", reason: "the folder is missing or is not a folder" }
    : { code: "not-shown", unit, reason: `the folder is missing, or ${unit} does not show it` };
}

/** Paths tested between two turns of the loop: a test takes some microseconds. */
const ASKED_AT_ONCE = 1000;

/** Returns the missing rows, by id, whose paths the rules leave out. */
async function leftOutOf(rules: Rules, gone: readonly KnownFile[]): Promise<ReadonlySet<number>> {
  const out = new Set<number>();
  for (const [index, { id, path }] of gone.entries()) {
    if (!rules.wants(path).wanted) out.add(id);
    if (index % ASKED_AT_ONCE === ASKED_AT_ONCE - 1) await nextTurn();
  }
  return out;
}
