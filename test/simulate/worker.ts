import { readFileSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { HoldKind } from "../../src/sync/ledger/sources/rows.ts";
import type { History } from "./history.ts";
import { installHooks } from "./hooks.ts";
import { MUTANTS } from "./mutants.ts";
import { shrink, wordsOfHistory } from "./shrink.ts";

/** What a worker is to do, as JSON in its one argument. */
export interface Order {
  readonly from: number;
  readonly count: number;
  /** The unkind worlds that histories are drawn from. Default: see `drawIn`. */
  readonly worlds?: readonly string[];
  /** Name of the deliberate bug to run with. */
  readonly mutant?: string;
  /** Ends at the first failure, without looking for its least history. */
  readonly stopAtFailure?: boolean;
  /** Runs each seed twice and compares the traces. */
  readonly twice?: boolean;
  /** Files of histories to run in place of the drawn ones: a seed is a place in the list. */
  readonly replays?: readonly string[];
  /** Reports every line of the trace. */
  readonly verbose?: boolean;
}

/** Reports of a worker, a line of JSON each on its standard output. */
export type Report =
  | { readonly kind: "line"; readonly text: string }
  /** It still searches the smallest history of a failed seed. */
  | { readonly kind: "shrinking" }
  | {
      readonly kind: "passed";
      readonly seed: number;
      readonly requests: number;
      readonly held: Readonly<Record<HoldKind, number>>;
    }
  | { readonly kind: "failed"; readonly seed: number; readonly words: readonly string[] };

const order = JSON.parse(process.argv[2] ?? "") as Order;
const mutant = MUTANTS.find(({ name }) => name === order.mutant);
if (order.mutant !== undefined && mutant === undefined) throw new Error(`no mutant ${order.mutant}`);
installHooks(mutant?.patches);
// What is imported from here on is the daemon in the simulation's world.
const { drawIn } = await import("./worlds.ts");
const { simulate } = await import("./run.ts");

const report = (what: Report): void => {
  writeSync(1, `${JSON.stringify(what)}\n`);
};

for (let seed = order.from; seed < order.from + order.count; seed += 1) {
  const replay = order.replays?.[seed];
  const history =
    replay === undefined ? drawIn(seed, order.worlds) : (JSON.parse(readFileSync(replay, "utf8")) as History);
  const notify = order.verbose === true ? (text: string) => report({ kind: "line", text }) : undefined;
  const { failure, trace, requests, held } = await simulate(history, notify).catch((error: unknown) => {
    // A daemon that never rests has failed. No other history can run in this process.
    report({ kind: "failed", seed, words: [String(error)] });
    process.exit();
  });
  if (failure === undefined && order.twice === true) {
    const again = await simulate(history);
    if (again.trace !== trace) {
      report({ kind: "failed", seed, words: [`the same seed gave the traces ${trace} and ${again.trace}`] });
      continue;
    }
  }
  if (failure === undefined) {
    report({ kind: "passed", seed, requests, held });
    continue;
  }
  const words = [`${failure.kind} ${failure.words}`, ...(replay === undefined ? [] : [replay])];
  if (order.stopAtFailure === true || replay !== undefined) {
    report({ kind: "failed", seed, words });
    if (replay === undefined) break;
    continue;
  }
  const least = await shrink(history, async (next) => {
    report({ kind: "shrinking" });
    return (await simulate(next)).failure?.kind === failure.kind;
  });
  const last = await simulate(least);
  const file = join(tmpdir(), `kbsync-simulated-${seed}.json`);
  writeFileSync(file, JSON.stringify(least));
  report({
    kind: "failed",
    seed,
    words: [
      ...words,
      `least history: ${last.failure?.words ?? ""}`,
      ...wordsOfHistory(least),
      `to see it: npm run simulate -- --replay ${file}`,
    ],
  });
}
