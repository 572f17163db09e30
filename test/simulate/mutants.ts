import type { Patch } from "./tuning.ts";

/** A deliberate bug, to show that the simulation finds it. */
export interface Mutant {
  readonly name: string;
  /** What it does, in words. */
  readonly does: string;
  /** The unkind worlds in which it is searched for. Default: all that the daemon passes. */
  readonly worlds?: readonly string[];
  readonly patches: readonly Patch[];
}

const patch = (file: string, find: Patch["find"], replace: string): Patch => ({
  file: `sync/${file}`,
  find,
  replace,
});

/** Each must be found. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: "no-intent",
    does: "a create leaves without an intent in the ledger",
    patches: [
      patch(
        "send/prepare.ts",
        "const id = ledger.intents.create(source.id, key, startedMs, observed);",
        "const id = ledger.intents.create(source.id, key, startedMs, observed); ledger.intents.remove(id);",
      ),
    ],
  },
  {
    name: "intent-retired-early",
    does: "an intent is removed when its request leaves, not when the answer is committed",
    patches: [
      patch(
        "send/create.ts",
        "  const answer = await remote.create(",
        "  ledger.note(() => ledger.intents.remove(intent.id));\n  const answer = await remote.create(",
      ),
    ],
  },
  {
    name: "no-flush",
    does: "a request leaves before its intent is on disk",
    patches: [
      patch(
        "ledger/commit.ts",
        "      committed.push(...groups);\n      flush();",
        "      committed.push(...groups);\n      for (const { resolve } of groups) resolve();\n      flush();",
      ),
    ],
  },
  {
    name: "no-list",
    does: "after a lost answer a create is sent again without asking the list",
    patches: [
      patch("send/create.ts", "const end = await findCreated(source, intent);", "const end = undefined;"),
    ],
  },
  {
    name: "attempts-uncounted",
    does: "a repeated create is not recorded as such, so that no second resource is searched for",
    patches: [
      patch("send/create.ts", "await ledger.write(() => ledger.intents.again(intent.id));", ""),
      patch("send/create.ts", "attempts: intent.attempts + 1", "attempts: intent.attempts"),
    ],
  },
  {
    name: "lists-believed",
    does: "nothing is compared again when lists have caught up",
    patches: [
      patch(
        "identity/contact.ts",
        "const AGAIN_LAGS = [1.25, 4, 12, 45];",
        "const AGAIN_LAGS: number[] = [];",
      ),
    ],
  },
  {
    name: "refill",
    does: "a service that lost most of its resources is refilled without approval",
    patches: [
      patch(
        "plan/alterations.ts",
        "if (missing + altered < LOSS_FILES_MIN ||",
        "if (missing + altered >= 0 ||",
      ),
    ],
  },
  {
    name: "delete-unreadable",
    does: "an unreadable path counts as deleted",
    patches: [
      patch(
        "plan/compared-rows.ts",
        "else if (inScope(row.path) && !unseen(row.path)) missing.push(row);",
        "else if (inScope(row.path)) missing.push(row);",
      ),
    ],
  },
  {
    name: "no-mass-brake",
    does: "a mass of deletes is not held",
    patches: [
      patch(
        "plan/brakes.ts",
        "  if (isMass(count, facts)) {",
        "  if (isMass(count, facts) && open.length < 0) {",
      ),
    ],
  },
  {
    name: "any-root",
    does: "another folder in the root's place is taken for it",
    patches: [
      patch("plan/brakes.ts", "!isSame && rootBefore.dev !== scan.root.dev", "rootBefore?.dev === -1"),
      patch(
        "plan/brakes.ts",
        "if (!isSame && open.length + facts.missingBusy + facts.hidden >= facts.filesBefore - facts.unread)",
        "if (!isSame && open.length < 0)",
      ),
    ],
  },
  {
    name: "deletes-forgotten",
    does: "deletes that a process left undone are not done by the next",
    patches: [
      patch(
        "daemon/source/source-deletes.ts",
        "ledger.intents.deletes(row.id).filter(",
        "ledger.intents.deletes(-1).filter(",
      ),
    ],
  },
  {
    name: "refusals-retried",
    does: "a refused request is repeated without end",
    patches: [
      patch(
        "send/remote/answer.ts",
        '(status >= 400 && status < 500)) return { kind: "refused", code, message: words };',
        '(status >= 400 && status < 500)) return later("no", "request");',
      ),
    ],
  },
  {
    name: "retry-after-ignored",
    does: "Retry-After is not honoured",
    patches: [
      patch("send/remote/answer.ts", /retryAfterMs: retryAfterMs\([^\n]*\),/, "retryAfterMs: undefined,"),
    ],
  },
  {
    name: "refusal-meant",
    does: "a single 401 or 403 keeps everything from being sent for a minute",
    patches: [patch("send/remote/pacer.ts", "? 0\n        : delayMs(", "? 60_000\n        : delayMs(")],
  },
  {
    name: "no-gate",
    does: "failures of the service do not close the gate",
    patches: [
      patch(
        "send/remote/pacer.ts",
        'if (restMs > 0 || (state.kind !== "open" && probing)) {',
        "if (Number.isNaN(restMs)) {",
      ),
    ],
  },
  {
    name: "moves-unread",
    does: "a file that moved counts as unchanged, and any file of its size as the same",
    patches: [
      patch(
        "plan/decide.ts",
        '  if (contentDiffers(read, row)) return "update";\n  if (moved) return "move";',
        '  if (moved) return "move";\n  if (contentDiffers(read, row)) return "update";',
      ),
      patch(
        "plan/moves.ts",
        "return singles(items, ({ ino, sizeBytes, mtimeMs }) => `${ino}:${sizeBytes}:${mtimeMs}`);",
        "return singles(items, ({ sizeBytes }) => `${sizeBytes}`);",
      ),
    ],
  },
  {
    name: "busy-uncounted",
    does: "files in flight do not count as missing when another folder replaced the source's",
    patches: [patch("plan/compared-rows.ts", "missingBusy.push(row);", "void missingBusy;")],
  },
  {
    name: "busy-unnoticed",
    does: "a file that disappears with its folder while in flight is not checked again",
    patches: [
      patch(
        "daemon/pass/compare.ts",
        "for (const path of changed) agenda.checkAgain(path);",
        "void changed;",
      ),
    ],
  },
  {
    name: "mounts-forgotten",
    does: "files below a disk that was unmounted count as deleted",
    worlds: ["remounts"],
    patches: [
      patch(
        "scan/rules/sub-mounts.ts",
        "if (options.hasFiles(path)) close(path, UNMOUNTED);\n        else ",
        "",
      ),
    ],
  },
  {
    name: "watches-outlived",
    does: "a disk that is mounted again is not watched",
    worlds: ["remounts"],
    patches: [
      patch("watch/watch-target.ts", '${mountsAround(real).join(" ")}', "${mountsAround(real).length}"),
    ],
  },
  {
    name: "growth-unnoticed",
    does: "a file that grows every few seconds is sent each time",
    worlds: ["growing-files"],
    patches: [patch("plan/timing.ts", "VERSION_GAP_MS = 10_000;", "VERSION_GAP_MS = 1500;")],
  },
  {
    name: "burst-unfinished",
    does: "deletes are sent before the burst that they belong to is over",
    worlds: ["troubled-and-emptied"],
    patches: [
      patch("daemon/pass/burst.ts", "const isOver = wasOver && nowMs >= endMs;", "const isOver = endMs > 0;"),
    ],
  },
  {
    name: "slow-failed",
    does: "a service that is still working on the first request counts as one that failed, and the next try has another key",
    worlds: ["slow-work"],
    patches: [
      patch("send/attempt.ts", "if (answer.isInFlight === true) {", "if (answer.retryAfterMs === 0) {"),
      patch(
        "ledger/intents/creates.ts",
        "if (!isSameDocument(before.observed, now)) return undefined;",
        "if (isSameDocument(before.observed, now)) return undefined;",
      ),
    ],
  },
  {
    name: "one-line",
    does: "all jobs wait in one line, whichever source they are of",
    worlds: ["starved-source"],
    patches: [
      patch(
        "send/queue/lines.ts",
        "const { owner, kind } = lines.lineOf(job);",
        'const { owner, kind } = { ...lines.lineOf(job), owner: "all", kind: "text" };',
      ),
    ],
  },
  {
    name: "normalised-altered",
    does: "the service's stored form of a text counts as somebody's change",
    worlds: ["normalising"],
    patches: [
      patch(
        "plan/alterations.ts",
        "if (listed.digest !== row.digest && listed.digest !== row.storedDigest)",
        "if (listed.digest !== row.digest)",
      ),
    ],
  },
  {
    name: "ignore-at-once",
    does: "an ignore file takes effect although it may be half-written",
    worlds: ["ignore-files"],
    patches: [patch("scan/rules/ignore-settling.ts", "nowMs - sinceMs >= restMs) {", "nowMs >= sinceMs) {")],
  },
  {
    name: "troubled-uncounted",
    does: "files that failed or are parked do not count as files of their folder",
    worlds: ["troubled-and-emptied"],
    patches: [
      patch(
        "daemon/pass/brake-facts.ts",
        "filesBefore: ledger.sources.withResource(id) - row.kept,",
        "filesBefore: row.agreed + row.unsure + row.held,",
      ),
    ],
  },
  {
    name: "coarse-trusted",
    does: "a file's times count as distinguishing every write, however coarse they are",
    worlds: ["coarse-times"],
    patches: [
      patch("plan/file-times.ts", "if (mtimeMs % 1000 !== 0 || ctimeMs % 1000 !== 0)", "if (mtimeMs >= 0)"),
    ],
  },
  {
    name: "scanned-without-pause",
    does: "a folder that cannot be watched is scanned again at once",
    patches: [patch("daemon/watching.ts", "const POLL_MS = 15_000;", "const POLL_MS = 300;")],
  },
  {
    name: "read-without-end",
    does: "a file with coarse times is read again each second, for good",
    worlds: ["coarse-times"],
    patches: [
      patch(
        "plan/file-times.ts",
        "return readAtMs < untilMs ? untilMs : undefined;",
        "return untilMs > 0 ? readAtMs + 1000 : undefined;",
      ),
    ],
  },
  {
    name: "metadata-uncompared",
    does: "a file whose metadata alone changed counts as acknowledged",
    worlds: ["metadata"],
    patches: [
      patch(
        "plan/decide.ts",
        "return metadataHash === undefined || metadataHash === row.metadataHash;",
        "return metadataHash === undefined || row.docId !== null;",
      ),
    ],
  },
  {
    name: "description-overlooked",
    does: "files are not checked again when the description of their folder changes",
    worlds: ["metadata"],
    patches: [
      patch(
        "daemon/pass/rules-key.ts",
        'const folderDescription = rules.folderDescription(path) ?? "";',
        'const folderDescription = String(path === "");',
      ),
    ],
  },
  {
    name: "wait-without-a-scan",
    does: "a wait ends before the folder was checked",
    worlds: ["asked-to-wait"],
    patches: [
      patch(
        "daemon/wait.ts",
        "source.agenda.answered() < waiting.ask) return;",
        "source.agenda.answered() < waiting.ask - 1) return;",
      ),
    ],
  },
  {
    name: "uncompared",
    does: "a new or old ledger sends without a comparison with the list",
    patches: [
      patch(
        "identity/contact.ts",
        "let isDue = isUnknown(context, source) ||",
        "let isDue = isUnknown(context, source) === undefined ||",
      ),
    ],
  },
  {
    name: "unanswered-uncompared",
    does: "a process that died amid creates starts without a comparison",
    patches: [
      patch(
        "identity/contact.ts",
        "const hasCreates = intents.creates(source.id).length > 0;",
        "const hasCreates = intents.creates(source.id).length < 0;",
      ),
    ],
  },
  {
    name: "absence-believed",
    does: "a resource that a list lacks counts as gone",
    worlds: ["wrong-lists", "lagging-lists"],
    patches: [
      patch(
        "identity/presence.ts",
        "const [first, ...others] = resources;",
        "const [first, ...others] = resources.slice(resources.length);",
      ),
    ],
  },
  {
    name: "sources-mixed",
    does: "a marker of another source counts as this one's",
    worlds: ["one-owner"],
    patches: [
      patch(
        "identity/listed.ts",
        'reading.kind === "whole" && reading.marker.source === signature.source ? reading.marker : undefined',
        'reading.kind === "whole" ? { ...reading.marker, source: signature.source } : undefined',
      ),
      patch(
        "identity/compare.ts",
        '} else if (reading.kind === "whole" && reading.marker.source === situation.source) {',
        '} else if (reading.kind === "whole") {',
      ),
    ],
  },
  {
    name: "versions-unread",
    does: "a file counts as having the version that a marker names",
    patches: [
      patch(
        "plan/versions.ts",
        "return bytesTag(read.hash, read.extractorVersion) === row.hash.slice(TAG_PREFIX.length);",
        'return read.hash !== "";',
      ),
    ],
  },
  {
    name: "old-ledger-trusted",
    does: "an old ledger decides where a marker says otherwise",
    patches: [
      patch(
        "identity/situation.ts",
        "isDistrusted: !ledger.contacts.isAdopted(source.id),",
        "isDistrusted: false,",
      ),
    ],
  },
  {
    name: "surplus-left",
    does: "second documents of a file stay",
    worlds: ["by-hand"],
    patches: [
      patch(
        "identity/apply.ts",
        "if (!isOurs || row === undefined || source.isBusy(path)) return found;",
        'if (!isOurs || row === undefined || source.isBusy(path) || path !== "") return found;',
      ),
    ],
  },
  {
    name: "homeless-left",
    does: "a document without a file stays after a lost ledger",
    patches: [
      patch(
        "identity/apply.ts",
        'else if (verdict.kind === "delete")',
        'else if (verdict.kind === "delete" && isOther)',
      ),
    ],
  },
  {
    name: "hidden-deleted",
    does: "what cannot be seen counts as gone",
    patches: [
      patch(
        "identity/situation.ts",
        "isPartial: scan.root === undefined || isOtherRoot(context, source, scan) || scan.unreadable.length > 0,",
        "isPartial: scan.root === undefined && isOtherRoot(context, source, scan),",
      ),
    ],
  },
  {
    name: "hidden-created",
    does: "a file that appears after a comparison is created though it has a document",
    patches: [
      patch(
        "identity/contact.ts",
        "const unseen = isProbing ? [] : candidates.filter(isHidden);",
        "const unseen = candidates.filter((each) => isHidden(each) && isProbing);",
      ),
    ],
  },
  {
    name: "absent-forgotten",
    does: "a file that comes back while its delete is held gets a second document",
    patches: [
      patch("daemon/pass/pass.ts", "if (absent.size === 0) return;", "if (absent.size >= 0) return;"),
    ],
  },
  {
    name: "moves-unrecorded",
    does: "a moved row does not remember its former path",
    patches: [
      patch("ledger/files/files.ts", "if (row !== undefined) setSent(sentBefore(row), id);", "void row;"),
    ],
  },
  {
    name: "other-folder-trusted",
    does: "a new ledger believes a folder that has none of the files",
    patches: [
      patch(
        "identity/apply.ts",
        "return shown === 0 && !verdicts.some(isOfFile);",
        "return shown < 0 && !verdicts.some(isOfFile);",
      ),
    ],
  },
  {
    name: "doubt-unlisted",
    does: "another version of an unanswered create is sent without a list",
    patches: [
      patch(
        "send/send.ts",
        "intent !== undefined && (intent.attempts > 1 ||",
        "intent?.attempts === 0 && (intent.attempts > 1 ||",
      ),
    ],
  },
  {
    name: "gone-believed",
    does: "the first 404 to an update or a delete is believed",
    worlds: ["false-404"],
    patches: [patch("send/gone.ts", "if (waitMs === undefined) return", "if (waitMs !== null) return")],
  },
  {
    name: "unsure-agreed",
    does: "an update in flight leaves its row in agreement",
    patches: [
      patch(
        "ledger/files/files.ts",
        "UPDATE files SET state = 'unsure', sent = ? WHERE id = ?",
        "UPDATE files SET sent = ? WHERE id = ?",
      ),
      patch("send/send.ts", 'if (later.acted === "maybe") sending.isUnanswered = true;', "void later.acted;"),
    ],
  },
  {
    name: "renames-lost",
    does: "a file that was renamed while no ledger knew it gets another document",
    worlds: ["lost-after-work"],
    patches: [
      patch("identity/compare.ts", "takeBefore(free.get(bytes) ?? [], probe)", "takeBefore([], probe)"),
    ],
  },
  {
    name: "damaged-ignored",
    does: "a document with a damaged marker counts as one of others",
    worlds: ["damaged-markers"],
    patches: [
      patch(
        "identity/compare.ts",
        "if (!situation.leftAlone.has(docId)) damaged.push(docId);",
        "if (situation.leftAlone.has(docId)) damaged.push(docId);",
      ),
    ],
  },
  {
    name: "unmarked-counted",
    does: "documents of others that have no marker count as the source's",
    worlds: ["descriptions-dropped", "descriptions-cut"],
    patches: [patch("identity/listed.ts", "foreign += 1;", "shown += 1;")],
  },
  {
    name: "owners-mixed",
    does: "a list's documents of other owners count as ours",
    worlds: ["list-of-all-owners"],
    patches: [
      patch("identity/listed.ts", "return foundOwner !== ownerId || ", "return foundOwner === undefined || "),
    ],
  },
  {
    name: "markers-unrestored",
    does: "a description whose marker is gone stays as it is",
    worlds: ["by-hand"],
    patches: [
      patch(
        "identity/listed.ts",
        "        if (alterations.length > 0) {",
        "        if (alterations.length > 0 && !isUnmarked) {",
      ),
    ],
  },
  {
    name: "undead-left",
    does: "a resource that is there again after its delete stays",
    worlds: ["restored-service", "false-404"],
    patches: [
      patch(
        "identity/compare.ts",
        "if (seen < list || situation.lagMs === 0) verdicts.push(",
        "if (seen > list) verdicts.push(",
      ),
    ],
  },
  {
    name: "writers-mixed",
    does: "what another installation wrote counts as this one's",
    worlds: ["other-machine"],
    patches: [
      patch(
        "identity/compare.ts",
        "if (marker.writer === writer || isApproved) return false;",
        "if (marker.writer !== '' || isApproved) return false;",
      ),
    ],
  },
  {
    name: "copy-trusted",
    does: "a copied state folder goes on as the one that it was copied from",
    worlds: ["other-machine"],
    patches: [
      patch(
        "identity/contact.ts",
        "return (ledger.contacts.signature(id).writer ?? signature.writer) !== signature.writer;",
        "return (ledger.contacts.signature(id).writer ?? signature.writer) === '';",
      ),
    ],
  },
  {
    name: "lost-writes-believed",
    does: "a list that shows an older version counts as stale for good",
    worlds: ["put-ignored"],
    patches: [
      patch(
        "identity/compare.ts",
        "if (!isListCurrent) return {",
        "if (!isListCurrent || isAcknowledged) return {",
      ),
    ],
  },
  {
    name: "lost-writes-repeated",
    does: "a write that the service loses twice is sent again and again, and not reported",
    worlds: ["put-ignored"],
    patches: [
      patch(
        "identity/compare.ts",
        'memory.resent.has(item.docId) ? "lost" : "send-again"',
        'memory.resent.has("") ? "lost" : "send-again"',
      ),
    ],
  },
  {
    name: "copies-deleted",
    does: "a person's copy of a document goes, whatever text it has",
    worlds: ["by-hand"],
    patches: [
      patch(
        "identity/apply.ts",
        "return second !== undefined && others.length > 0 &&",
        "return second !== undefined && others.length < 0 &&",
      ),
    ],
  },
  {
    name: "title-taken",
    does: "the document of another file with the same title counts as made by a create",
    worlds: ["upsert-by-title"],
    patches: [
      patch(
        "send/acknowledge.ts",
        "if (row === undefined || (row.docId !== docId && ledger.files.ownsDoc(docId)))",
        "if (row === undefined)",
      ),
    ],
  },
];
