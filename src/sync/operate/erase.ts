import { rm } from "node:fs/promises";
import { join } from "node:path";
import { KbsyncError } from "../../lib/failure.ts";
import { shellWord } from "../../lib/shell-word.ts";
import type { AnswerOf, RequestOf } from "../../wire/daemon.ts";
import { targetIn } from "../scan/disk/source-path.ts";
import type { ErasedSubtree } from "../ledger/erasures.ts";
import { trashFolder } from "../ledger/trash.ts";
import type { RelativePath } from "../plan/model.ts";
import { answered, openClient } from "../send/remote/client.ts";
import type { ServiceAddress } from "../send/remote/transport.ts";
import { IGNORE_FILE } from "../scan/rules/ignore-files.ts";
import { openRules, type Rules, type WatchedSource } from "../scan/rules/rules.ts";
import { NOTE } from "../ledger/trash/saved-file.ts";
import { inspectPath } from "../scan/disk/inspect-path.ts";
import type { OperatorLedger } from "./offline.ts";

/** Dependencies of an erasure. */
export interface ErasureParts {
  readonly ledger: Pick<OperatorLedger, "erasures" | "flush" | "sources" | "write">;
  readonly stateDir: string;
  /** The configured sources. */
  readonly sources: readonly WatchedSource[];
  readonly service: ServiceAddress;
}

/** Longest time for an answer: a service rewrites its database, which takes some seconds for each gigabyte. */
const ANSWER_MS_MAX = 30 * 60_000;
/** Requests at a time: those that wait for the database to be rewritten share the next time. */
const AT_ONCE = 8;
/** Time without an answer after which an erasure gives up. */
const PATIENCE_MS = 10_000;

/**
 * Erases the documents of a file or folder that is deleted or excluded: at the service, in the ledger and in the trash. The service comes
 * first, so that a crash leaves the ids for a repetition. Throws `still_synced`, `source_missing`, `erase_unsettled`, `outside_sources`,
 * and what the service's removals throw.
 */
export async function erase(
  parts: ErasureParts,
  { path }: RequestOf<"erase">,
  signal: AbortSignal,
): Promise<AnswerOf<"erase">> {
  const { ledger } = parts;
  ledger.flush();
  const subtree = subtreeOf(parts, path);
  refuseSynced(parts, subtree, path);
  const docIds = ledger.erasures.resources(subtree);
  const purged = await purge(parts.service, docIds, signal);
  await removeHere(parts, subtree, docIds);
  return { documents: docIds.length, purged };
}

/**
 * Removes resources of the service for good, live or deleted. Ids that it does not know count as removed. Returns false if the service
 * does not declare that it removes texts: it has deleted the resources, and retains what it retains.
 */
async function purge(
  address: ServiceAddress,
  docIds: readonly string[],
  signal: AbortSignal,
): Promise<boolean> {
  let purges = false;
  const remote = openClient({
    address,
    connections: AT_ONCE,
    timeoutMs: ANSWER_MS_MAX,
    patienceMs: PATIENCE_MS,
    onCapabilities: (declared) => (purges = declared?.purges ?? false),
  });
  try {
    // A service that does not know purges ignores the query and deletes as always.
    await answered("erasure", () => remote.collections(signal));
    const waiting = [...docIds];
    const work = async (): Promise<void> => {
      for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
        const docId = id;
        await answered("erasure", () => remote.purge(docId, signal));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    return purges;
  } finally {
    await remote.close();
  }
}

/** Removes what the ledger and the trash hold. */
async function removeHere(
  { ledger, stateDir }: ErasureParts,
  subtree: ErasedSubtree,
  docIds: readonly string[],
): Promise<void> {
  // The files first: without a row they would stay, and a note without a text would restore its row.
  for (const name of ledger.erasures.texts(subtree, docIds))
    for (const each of [`${name}${NOTE}`, name]) await rm(join(trashFolder(stateDir), each), { force: true });
  await ledger.write(() => ledger.erasures.remove(subtree, docIds));
  ledger.flush();
  ledger.erasures.scrub();
}

/** Throws for files that would be sent again. */
function refuseSynced(parts: ErasureParts, subtree: ErasedSubtree, asked: string): void {
  const row = parts.ledger.sources.get(subtree.source);
  const source = parts.sources.find(({ absolutePath }) => row.active && absolutePath === row.path);
  refuseOpenCreates(parts, subtree);
  if (source === undefined) return;
  const rules = openRules(source);
  const known = parts.ledger.erasures.paths(subtree);
  for (const each of new Set([...(subtree.below === undefined ? [] : [subtree.below]), ...known])) {
    if (!rules.wants(each).wanted) continue;
    if (inspectPath(source.absolutePath).kind !== "folder") throw rootMissing(source.absolutePath);
    const { kind } = inspectPath(join(source.absolutePath, each));
    if (kind !== "absent" && (kind !== "folder" || known.includes(each)))
      throw stillSynced(rules, each, shellWord(asked));
  }
}

/** Throws while it is unknown which resource a create made. */
function refuseOpenCreates({ ledger }: ErasureParts, subtree: ErasedSubtree): void {
  if (!ledger.erasures.hasOpenCreates(subtree)) return;
  throw new KbsyncError(
    "a document was sent, and its answer was lost: the service may have it under an unknown id",
    {
      code: "erase_unsettled",
      retryable: true,
      hint: "`kbsync sync` finds it, or the running daemon does. Then run the same command again.",
    },
  );
}

function rootMissing(root: string): KbsyncError {
  return new KbsyncError(`the folder ${root} is missing, so its files may return and would be sent again`, {
    code: "source_missing",
    subject: root,
    hint: "Bring it back, or remove the source from the configuration, and run the same command again.",
  });
}

function stillSynced(rules: Rules, path: RelativePath, words: string): KbsyncError {
  const root = rules.source.absolutePath;
  const file = join(root, path);
  const ignore = `printf '%s\\n' ${shellWord(`/${path}`)} >> ${shellWord(join(root, IGNORE_FILE))}`;
  return new KbsyncError(`${file} is in the folder and would be sent again`, {
    code: "still_synced",
    subject: file,
    hint: `Delete the file, or exclude it: \`${ignore} && kbsync erase ${words}\``,
  });
}

/** The subtree of an absolute path, also in a source that left the configuration. Throws `outside_sources`. */
function subtreeOf({ ledger }: ErasureParts, path: string): ErasedSubtree {
  const { source, below } = targetIn([...ledger.sources.folders()], ([, folder]) => folder, path);
  return { source: source[0], below };
}
