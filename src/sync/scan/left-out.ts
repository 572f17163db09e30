import { inSlices, stepsWhile } from "../../lib/steps.ts";
import type { ListedFile } from "../../wire/daemon-files.ts";
import type { LeftOut } from "../../wire/daemon-folders.ts";
import type { FolderPath } from "../plan/model.ts";
import type { Rules } from "./rules/rules.ts";
import { nothingFound, type OnLeftOut, walk } from "./walk.ts";

/** Rules in a result. More would be no overview. */
const REASONS_MAX = 20;
/** Rules that are counted apart. A configuration may have thousands, and an ignore file any number. */
const REASONS_COUNTED = 1000;

/** Counts paths by the reason why they are left out. */
export function openReasons(): { readonly add: OnLeftOut; readonly list: () => LeftOut[] } {
  const byReason = new Map<string, { -readonly [K in keyof LeftOut]: LeftOut[K] }>();
  const others = { reason: "other rules", files: 0, folders: 0, example: "" };
  const sizeOf = ({ files, folders }: LeftOut): number => files + folders;
  return {
    add: (path, reason, what) => {
      let sum = byReason.get(reason);
      if (sum === undefined && byReason.size < REASONS_COUNTED) {
        sum = { reason, files: 0, folders: 0, example: path };
        byReason.set(reason, sum);
      }
      const counted = sum ?? others;
      if (counted.example === "") counted.example = path;
      if (what === "file") counted.files += 1;
      else counted.folders += 1;
    },
    list: () => {
      const sorted = [...byReason.values()].toSorted((a, b) => sizeOf(b) - sizeOf(a));
      for (const { files, folders, example } of sorted.splice(REASONS_MAX)) {
        others.files += files;
        others.folders += folders;
        if (others.example === "") others.example = example;
      }
      return sizeOf(others) === 0 ? sorted : [...sorted, others];
    },
  };
}

/** Lists files and folders at or below a path that the rules leave out, each with the rule. */
export async function listLeftOut(
  rules: Rules,
  below: FolderPath,
  limit: number,
  signal: AbortSignal,
): Promise<readonly ListedFile[]> {
  const found: ListedFile[] = [];
  const source = rules.source.absolutePath;
  const facts = {
    source,
    state: "skipped",
    docId: null,
    code: "left_out",
    sinceMs: null,
    hasOlder: false,
  } as const;
  const steps = walk(source, rules, [below], nothingFound(), (path, message, what) => {
    found.push({ ...facts, path: what === "folder" ? `${path}/` : path, message });
  });
  await inSlices(
    stepsWhile(steps, () => found.length < limit),
    signal,
  );
  return found.toSorted((a, b) => (a.path < b.path ? -1 : 1)).slice(0, limit);
}
