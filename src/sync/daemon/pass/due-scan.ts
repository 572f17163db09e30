import type { RelativePath, Scan } from "../../plan/model.ts";
import { scanPaths, scanSource } from "../../scan/scan.ts";
import type { Due } from "../agenda/checks.ts";
import { widen } from "./moved-files.ts";
import { type PassContext, PATHS_MAX, scanOptions } from "./context.ts";

/**
 * Reports whether a scan of single paths may have found a file under two spellings. A file system that ignores case, or how
 * letters are composed, finds a file by its old name after `a.md` became `A.md`. Only lists of folders show which name it has.
 */
function hasTwoSpellings({ entries }: Scan): boolean {
  const spellings = new Set(
    entries.map(({ ino, path }) => `${ino} ${path.normalize("NFC").toLowerCase().normalize("NFC")}`),
  );
  return spellings.size < entries.length;
}

/** Number of deletes that are sent after checks of only their paths still find them missing. */
const FEW_DELETES = 10;

/** Scans what is due: these paths, or the `whole` source. */
export async function scanDue(
  pass: PassContext,
  due: Due,
  when: {
    readonly inFlight: readonly RelativePath[];
    readonly isBurstOver: boolean;
    readonly wasHalted: boolean;
  },
): Promise<{ readonly scan: Scan; readonly whole: boolean }> {
  const { source, context, agenda } = pass;
  const { root, rules } = source;
  const { inFlight, isBurstOver, wasHalted } = when;
  const burst = agenda.missing();
  // Not every folder reports each delete: before more than a few are sent, all of it is scanned.
  const isLarge = isBurstOver && (burst.size > FEW_DELETES || inFlight.length > PATHS_MAX);
  // A scan of a few paths does not list the root, and would end a halt because of an unreadable one.
  const whole = due.all || wasHalted || due.paths.length > PATHS_MAX || isLarge;
  const scanWhole = (): Promise<Scan> => scanSource(root, rules, scanOptions(pass, true));
  const scan = whole ? await scanWhole() : await scanPaths(root, rules, due.paths, scanOptions(pass));
  context.ledger.flush();
  if (whole) return { scan, whole };
  const wider = await widen(pass, scan, [...burst.keys(), ...inFlight], isBurstOver);
  return hasTwoSpellings(wider) ? { scan: await scanWhole(), whole: true } : { scan: wider, whole };
}
