import { basename } from "node:path";
import { realPath } from "../../config/folders.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { pathBelow } from "../../lib/path-below.ts";
import { type Ledger, ledgerFile } from "../ledger/ledger.ts";
import { movedSources } from "./source/moved-sources.ts";
import { openRemovals, type Removals } from "./source/removal.ts";
import { ledgerFailure } from "../ledger/database/open.ts";
import type { SourceRow } from "../ledger/sources/rows.ts";
import { findHandOvers, type HandOver } from "../plan/hand-overs.ts";
import { ignoreFileSeenFrom } from "../scan/rules/ignore-files.ts";
import { openRules, type WatchedSource } from "../scan/rules/rules.ts";
import { openSource, type SourceSync } from "./source/source.ts";
import { LIST_LAG_MS } from "../identity/list.ts";
import type { Watch } from "../watch/watch.ts";
import type { Parts } from "./parts.ts";

/** The sources of a daemon. There are none before `open`. */
export type DaemonSources = ReturnType<typeof openDaemonSources>;

/** Prepares a daemon's sources. `onChange` is called when their status may have changed. */
export function openDaemonSources(parts: Parts, onChange: () => void) {
  const { options, ledger, context, work, lifecycle, paths, held } = parts;
  const { sync } = options;
  const watches = new Map<number, Watch>();
  let sources: readonly SourceSync[] = [];
  let removals: Removals | undefined;

  const openOn = (row: SourceRow, source: WatchedSource, once: boolean): SourceSync => {
    paths.set(row.id, row.path);
    // A signal of its own distinguishes the requests of this source, whose changes a pause suspends.
    const signal = AbortSignal.any([context.signal]);
    const opened = openSource({
      row,
      rules: openRules(source, {
        ignoreFiles: {
          settleMs: sync.settleMs,
          changedRulesMs: context.timing.changedRulesMs,
          now: context.now,
          inForce: ledger.tree.ignoreFiles(row.id),
        },
        innerRoots: () =>
          (source.innerFolders ?? []).length === 0
            ? []
            : ledger.sources.active().flatMap(({ path, root }) => {
                const below = pathBelow(realPath(source.absolutePath), realPath(path));
                return root === undefined || below === undefined || below === "" ? [] : [root];
              }),
        mounts: {
          known: ledger.tree.mounts(row.id),
          hasFiles: (path) => ledger.tree.hasFiles(row.id, path),
        },
      }),
      sync,
      context: { ...context, signal },
      queue: work,
      once,
      onUnwatched: () => watches.get(row.id)?.renew(),
      onWarning: parts.warn,
      markerId: source.id ?? ledger.contacts.signature(row.id).markerId ?? basename(source.absolutePath),
      writer: parts.installation.writer(row.path),
      lagMs: options.service.listLagMs ?? LIST_LAG_MS,
      onChange,
      ...(options.observer && { onRescanned: (ms) => options.observer?.rescanned(row.id, ms / 1000) }),
    });
    held.set(signal, () => opened.isPaused());
    return opened;
  };

  return {
    all: (): readonly SourceSync[] => sources,
    /** Opens the configured sources on their rows in the ledger. Sources that left the configuration keep their rows. */
    open: (once: boolean): void => {
      sources = openRows(parts).map(({ source, row }) => openOn(row, source, once));
      removals = openRemovals({
        context,
        queue: work,
        lagMs: options.service.listLagMs ?? LIST_LAG_MS,
        once,
        onBegin: (row) => paths.set(row.id, row.path),
        onError: (error) => lifecycle.fail(error),
        onChange,
      });
    },
    /** Opens a source on a row that need not be in the ledger. */
    openOn,
    /** Starts the sources' loops. An error in one ends the daemon. */
    start: (): void => {
      for (const source of sources) source.run().catch((error: unknown) => lifecycle.fail(error));
      removals?.begin();
    },
    /** Stops the sources' loops. Their jobs end with the queue. */
    stop: (): void => {
      for (const source of sources) source.stop();
      removals?.stop();
    },
    /** Removals of sources that left the configuration, after approval. */
    removals: (): Removals | undefined => removals,
    /** Whether all noticed work is done. */
    isIdle: (): boolean => sources.every((source) => source.isIdle()) && removals?.isIdle() !== false,
    /** The watches, by the source's number. */
    watches,
  };
}

/** Opens the rows of the configured sources, where these and their files are now. */
function openRows({
  options: { sources, stateDir },
  ledger,
  installation,
  warn,
}: Parts): readonly { readonly source: WatchedSource; readonly row: SourceRow }[] {
  try {
    if (ledger.claim()) warn(oldLedger(ledgerFile(stateDir)));
    for (const { id, path } of movedSources(ledger, sources)) {
      const { path: before } = ledger.sources.get(id);
      const { markerId, writer } = ledger.contacts.signature(id);
      ledger.sources.repath(id, path);
      // The same folder under another name: nobody else writes there.
      if (markerId !== undefined && writer === installation.writer(before))
        ledger.contacts.sign(id, markerId, installation.writer(path));
    }
    const rows = sources.map((source) => {
      const { absolutePath: path, ownerId, collection, deletes, innerFolders } = source;
      const isJoining = ledger.sources.peek(path, ownerId, collection)?.active !== true;
      const { id } = ledger.sources.open(path, ownerId, collection, deletes === "never");
      ledger.contacts.addScope(id, { tier: collection, ownerId });
      // A new ledger, or one from before markers, is this installation's.
      if (ledger.contacts.signature(id).writer === undefined)
        ledger.contacts.sign(id, source.id ?? basename(path), installation.writer(path));
      return { id, path: realPath(path), innerFolders, source, isJoining };
    });
    ledger.sources.keepActive(rows.map(({ id }) => id));
    const known = ledger.sources.withFiles().map(({ id, path }) => ({ id, path: realPath(path) }));
    for (const each of findHandOvers(known, rows)) {
      const isJoining = rows.some(({ id, isJoining: joins }) => id === each.source && joins);
      // All of it or nothing, also after a power loss.
      ledger.note(() => handOver(ledger, each, isJoining));
    }
    ledger.flush();
    return rows.map(({ source, id }) => ({ source, row: ledger.sources.get(id) }));
  } catch (error) {
    throw ledgerFailure(error, ledgerFile(stateDir));
  }
}

function handOver(ledger: Ledger, each: HandOver, isJoining: boolean): void {
  ledger.sources.handOver(each);
  for (const scope of ledger.contacts.scopes(each.from)) ledger.contacts.addScope(each.source, scope);
  // Only those rows of a new source are files that it sent itself.
  if (ledger.contacts.isNew(each.source)) {
    ledger.contacts.setAdopted(each.source);
    ledger.contacts.distrust(each.source);
  }
  // A paused source's documents stay as they are, also as another's.
  if (isJoining && ledger.sources.get(each.from).paused) ledger.operator.setPaused(each.source, true);
  handRulesOver(ledger, each);
  // What is left of it are open requests, whose files are another source's: nobody need agree to the end of their resources.
  if (each.below === "") ledger.sources.approve(each.from);
}

/** An ignore file that is missing at this very start may be about to be rewritten, whichever source knew it. */
function handRulesOver({ sources, tree }: Ledger, { from, source }: HandOver): void {
  const known = tree.ignoreFiles(source);
  const [root, former] = [realPath(sources.get(source).path), realPath(sources.get(from).path)];
  for (const [path, hash] of tree.ignoreFiles(from)) {
    const file = ignoreFileSeenFrom(root, former, path);
    if (file !== undefined && !known.has(file)) tree.setIgnoreFile(source, { file, hash });
  }
}

function oldLedger(file: string): KbsyncError {
  return new KbsyncError(
    `the ledger ${file} is older than what was last written here; was it restored from a backup?`,
    {
      code: "ledger_old",
      subject: file,
      retryable: true,
      hint: "Before anything is created, the service's resources are listed and assigned to their files.",
    },
  );
}
