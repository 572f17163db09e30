import type { Daemon } from "../../../src/sync/daemon.ts";
import type { FolderReceipt } from "../../../src/wire/receipt.ts";
import { SECOND, type Happening, type History } from "../history.ts";
import { SECOND_ROOT } from "./disk.ts";
import { isUnknowable, NOTICED_MS, watchBehind, type BehindFile } from "./honesty.ts";
import type { World } from "./world.ts";

/** Every so many questions one asks for a fresh answer: that scans the folders, and the disk must rest otherwise. */
const FRESH_EVERY = 10;
/** How long such a question waits. */
const WAIT_SECONDS = 40;

/**
 * Asks for receipts again and again while the history happens. A receipt never claims more than is so: what it counts as done is at
 * the service as it was saved before `asOf`, and with a wait, as it was saved before the question.
 */
export function askForReceipts(world: World, history: History, untilMs: number): void {
  const { clock, runner } = world;
  const { receiptEveryMs } = history.conditions;
  if (receiptEveryMs === undefined) return;
  const law = openLaw(world, history);
  let questions = 0;
  const ask = (): void => {
    const daemon = runner.running();
    questions += 1;
    if (daemon !== undefined) {
      const isFresh = questions % FRESH_EVERY === 0;
      void (isFresh ? askFresh(daemon, law, clock.nowMs()) : askNow(daemon, law));
    }
    if (clock.nowMs() < untilMs) clock.at(clock.nowMs() + receiptEveryMs, { alive: true }, ask);
  };
  clock.at(receiptEveryMs, { alive: true }, ask);
}

async function askNow(daemon: Daemon, law: Law): Promise<void> {
  const receipt = await daemon.receipt({ cited: [] }, new AbortController().signal);
  for (const folder of receipt.folders) law.check(folder);
}

async function askFresh(daemon: Daemon, law: Law, askedMs: number): Promise<void> {
  const request = { cited: [], waitSeconds: WAIT_SECONDS };
  // The process may die while it waits, or stop.
  const receipt = await daemon.receipt(request, new AbortController().signal).catch(() => undefined);
  for (const folder of receipt?.folders ?? []) law.checkFresh(folder, askedMs);
}

interface Law {
  check(folder: FolderReceipt): void;
  checkFresh(folder: FolderReceipt, askedMs: number): void;
}

function openLaw(world: World, history: History): Law {
  const { clock, judge } = world;
  const { happenings } = history;
  const behindNow = watchBehind(world, history);
  const isWatched = !happenings.some(isUnknowable) && !happenings.some(isClock);
  const isScanned = !happenings.some(isOutside) && !happenings.some(isClock);
  const fail = (what: string, wrong: readonly BehindFile[]): void => {
    const words = wrong.map((each) => each.words).join("; ");
    judge.fail("overclaimed", `the receipt says that ${what}: ${words}`);
  };
  const behindIn = ({ folder }: FolderReceipt): readonly BehindFile[] =>
    behindNow().filter(({ path }) => path.startsWith(SECOND) === (folder === SECOND_ROOT));
  /** What was saved before `asOf` is there, except as many files as are counted. An unreadable folder counts once. */
  const checkCounts = (receipt: FolderReceipt, behind: readonly BehindFile[], knownMs = Infinity): void => {
    const { asOf, pending, failed, held, unreadable } = receipt;
    if (asOf === null || unreadable > 0) return;
    const asOfMs = Math.min(knownMs, clock.nowMs() - (Date.now() - Date.parse(asOf)));
    const wrong = behind.filter(({ sinceMs }) => sinceMs < asOfMs);
    if (wrong.length > pending + failed + held) fail(`all but ${pending + failed + held} agree`, wrong);
  };
  return {
    check: (receipt) => {
      const behind = behindIn(receipt);
      if (!isWatched) return;
      checkCounts(receipt, behind);
      const wrong = behind.filter(({ sinceMs }) => clock.nowMs() - sinceMs > NOTICED_MS);
      if (receipt.current && wrong.length > 0) fail("it is current", wrong);
    },
    checkFresh: (receipt, askedMs) => {
      const behind = behindIn(receipt);
      if (!isScanned) return;
      // Where hints are lost, nothing later than the question was compared.
      checkCounts(receipt, behind, isWatched ? Infinity : askedMs);
      const wrong = behind.filter(({ changedMs }) => changedMs < askedMs);
      if (receipt.current && wrong.length > 0) fail("it is current as of the question", wrong);
    },
  };
}

/** What a daemon that looks at the disk cannot know either. */
function isOutside(happening: Happening): boolean {
  return isUnknowable(happening) && happening.kind !== "deaf" && happening.kind !== "degraded";
}

function isClock({ kind }: Happening): boolean {
  return kind === "clock";
}
