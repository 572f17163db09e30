import type { DaemonActivity } from "../../wire/daemon-files.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { KbsyncError } from "../../lib/failure.ts";
import type { AnswerOf, RequestOf } from "../../wire/daemon.ts";
import { erase } from "../operate/erase.ts";
import { type FilesQuery, openCommands, type WakeUps } from "../operate/commands.ts";
import type { RelativePath } from "../plan/model.ts";
import { pathBelow } from "../../lib/path-below.ts";
import { targetIn } from "../scan/disk/source-path.ts";
import type { SourceSync } from "./source/source.ts";
import type { LiveWork } from "../plan/version.ts";
import { paceTrouble } from "../send/remote/pacer.ts";
import { hasMeaning, openMeaning } from "./meaning.ts";
import type { Parts } from "./parts.ts";
import type { DaemonSources } from "./sources.ts";

/** Operations of a running daemon: the commands on its ledger, and others. */
export type Operations = ReturnType<typeof openOperations>;

/** Opens the operations on a daemon. */
export function openOperations(parts: Parts, sources: DaemonSources) {
  const { ledger, listeners } = parts;
  const source = (id: number): SourceSync | undefined => sources.all().find((each) => each.id === id);
  const wakeUps: WakeUps = {
    pause: (id) => source(id)?.pause(),
    resume: (id) => source(id)?.resume(),
    check: (id, below) => source(id)?.hint(below),
    retryDeletes: (id, below) => source(id)?.deletes.retry(below),
    removeSources: () => sources.removals()?.begin(),
  };

  const commands = openCommands(ledger, {
    stateDir: parts.options.stateDir,
    sources: () => parts.options.sources,
    wakeUps,
    live: () => liveWork(parts, sources),
  });
  return {
    ...commands,
    retry: async (path?: string) => {
      parts.pacer.retry();
      return commands.retry(path);
    },
    files: (query: FilesQuery) => {
      if (query.path !== undefined) targetIn(sources.all(), rootOf, query.path);
      // A summary of the work may be read after the ledger has become unreadable or was closed.
      return parts.read(() => commands.files(query), []);
    },
    /** What waits at the service in the ranges that are searched by meaning; undefined: it does not say. */
    pending: openMeaning(parts, () => sources.all()),
    /** Erases documents as the operator's `erase` does, once no work on them is in flight. Throws `erase_busy` too. */
    erase: async (request: RequestOf<"erase">, signal: AbortSignal): Promise<AnswerOf<"erase">> => {
      const targets = targetsOfErasure(sources.all(), request.path);
      for (const target of targets) await comeToRest(target, signal);
      const answer = await erase(
        {
          ledger,
          stateDir: parts.options.stateDir,
          sources: parts.options.sources,
          service: parts.options.service,
        },
        request,
        signal,
      );
      for (const { source: found, below } of targets) found.hint(below);
      return answer;
    },
    /** Adds a listener for activities. Returns a function that removes it. */
    follow: (listener: (activity: DaemonActivity) => void): (() => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** What the daemon knows of files beyond the ledger. */
function liveWork(parts: Parts, sources: DaemonSources): LiveWork {
  return {
    source: (id) => sources.all().find((each) => each.id === id),
    outage: paceTrouble(parts.pacer.state()),
    hasMeaning: (docId, signal) => hasMeaning(parts, docId, signal),
  };
}

/** Longest wait until a deleted file's own delete has ended, and the interval of its checks. */
const REST_MS_MAX = 60_000;
const REST_CHECK_MS = 50;

/** The subtrees of an erasure in configured sources. */
function targetsOfErasure(all: readonly SourceSync[], path: string): readonly SourceTarget[] {
  return all.flatMap((source) => {
    const below = pathBelow(rootOf(source), path);
    return below === undefined ? [] : [{ source, below: below === "" ? undefined : below }];
  });
}

/** Waits until a check of the target has ended and no job is left at it: a job would write its path again. */
async function comeToRest({ source, below }: SourceTarget, signal: AbortSignal): Promise<void> {
  const asked = source.agenda.ask(below);
  const isAtRest = (): boolean =>
    source.isPaused()
      ? !source.isSending()
      : source.agenda.answered() >= asked && source.pending(below).length === 0;
  for (let waitedMs = 0; !isAtRest(); waitedMs += REST_CHECK_MS) {
    if (waitedMs >= REST_MS_MAX) {
      throw new KbsyncError("the daemon is still working on it", {
        code: "erase_busy",
        subject: rootOf(source),
        retryable: true,
        hint: "`kbsync wait` returns when it is done, and `kbsync status` shows what holds it up.",
      });
    }
    await sleep(REST_CHECK_MS, undefined, { signal });
  }
}

/** A target in a source: its root, or a path below it. */
export interface SourceTarget {
  readonly source: SourceSync;
  /** Undefined: the source as a whole. */
  readonly below: RelativePath | undefined;
}

/** The folder of a source. */
export function rootOf({ rules }: SourceSync): string {
  return rules.source.absolutePath;
}
