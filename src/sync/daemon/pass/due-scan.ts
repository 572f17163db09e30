import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { RelativePath, Scan, ScanEntry } from "../../plan/model.ts";
import { scanPaths, scanSource } from "../../scan/scan.ts";
import type { Due } from "../agenda/checks.ts";
import { widen } from "./moved-files.ts";
import { type PassContext, PATHS_MAX, scanOptions } from "./context.ts";

/**
 * Removes from a scan of single paths what exists only under another spelling. A file system that ignores case, or how
 * letters are composed, finds a file by its old name after `a.md` became `A.md`; only the list of its folder shows
 * which name it has. Hard links of two such names are both listed, and stay. A scan of the whole source has its names
 * from lists.
 */
export function withoutOtherSpellings(root: string, scan: Scan): Scan {
  if (scan.scope === undefined) return scan;
  const spellings = Map.groupBy(scan.entries, ({ ino, path }) => `${ino} ${folded(path)}`);
  if (spellings.size === scan.entries.length) return scan;
  const isListed = openListing(root);
  const taken = new Set<ScanEntry>();
  for (const entries of spellings.values()) {
    if (entries.length === 1) continue;
    const others = entries.filter(({ path }) => !isListed(path));
    // If none is listed, the file has just been renamed once more. The next check finds it.
    if (others.length < entries.length) for (const entry of others) taken.add(entry);
  }
  return taken.size === 0 ? scan : { ...scan, entries: scan.entries.filter((entry) => !taken.has(entry)) };
}

/** Returns a key that is equal for spellings that no file system distinguishes that ignores case or composition. */
function folded(path: RelativePath): string {
  return path.normalize("NFC").toLowerCase().normalize("NFC");
}

/**
 * Returns a test for whether every part of a path is spelled as its folder lists it. Each folder is listed once. A
 * folder that cannot be listed counts as listing everything.
 */
function openListing(root: string): (path: RelativePath) => boolean {
  const names = new Map<RelativePath, ReadonlySet<string> | undefined>();
  const namesIn = (folder: RelativePath): ReadonlySet<string> | undefined => {
    if (!names.has(folder)) names.set(folder, listOf(join(root, folder)));
    return names.get(folder);
  };
  return (path) => {
    const parts = path.split("/");
    return parts.every((name, at) => namesIn(parts.slice(0, at).join("/"))?.has(name) ?? true);
  };
}

function listOf(folder: string): ReadonlySet<string> | undefined {
  try {
    return new Set(readdirSync(folder));
  } catch {
    return undefined;
  }
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
  const { source, context, states } = pass;
  const { root, rules } = source;
  const { inFlight, isBurstOver, wasHalted } = when;
  const burst = states.missing();
  // Not every folder reports each delete: before more than a few are sent, all of it is scanned.
  const isLarge = isBurstOver && (burst.size > FEW_DELETES || inFlight.length > PATHS_MAX);
  // A scan of a few paths does not list the root, and would end a halt because of an unreadable one.
  const whole = due.all || wasHalted || due.paths.length > PATHS_MAX || isLarge;
  const scan = whole
    ? await scanSource(root, rules, scanOptions(pass, true))
    : await scanPaths(root, rules, due.paths, scanOptions(pass));
  context.ledger.flush();
  if (whole) return { scan, whole };
  // Two spellings of one file may come from either scan.
  const wider = await widen(pass, scan, [...burst.keys(), ...inFlight], isBurstOver);
  return { scan: withoutOtherSpellings(root, wider), whole };
}
