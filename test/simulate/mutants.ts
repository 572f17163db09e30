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
        "      unflushed.push(...waiters);\n      flush();",
        "      unflushed.push(...waiters);\n      for (const { resolve } of waiters) resolve();\n      flush();",
      ),
    ],
  },
  {
    name: "no-list",
    does: "after a lost answer a create is sent again without asking the list",
    patches: [
      patch("send/create.ts", '(await source.settle(intent)) === "adopted"', "Number.isNaN(intent.attempts)"),
    ],
  },
  {
    name: "attempts-uncounted",
    does: "a repeated create is not recorded as such, so that no extra resource is searched for",
    patches: [
      patch("send/create.ts", "    await ledger.write(() => ledger.intents.again(intent.id));\n", ""),
      patch("send/create.ts", "intent = withAttempt(intent);", "void withAttempt;"),
    ],
  },
  {
    name: "doubts-forgotten",
    does: "an extra resource is searched for only once, at once",
    patches: [
      patch("adopt/doubts.ts", "Math.min(ageMs(doubt), quietMs) >= DOUBT_MS && !", "nowMs >= 0 && !"),
    ],
  },
  {
    name: "adopt-by-title",
    does: "a resource of the same title is adopted, whatever it holds and however old it is",
    patches: [
      patch(
        "plan/settlement.ts",
        "createdMs >= latestMs - CLOCK_SLACK_MS",
        "createdMs !== latestMs - CLOCK_SLACK_MS",
      ),
      patch("plan/settlement.ts", "forms.descriptions === true", "forms.descriptions !== null"),
      patch("adopt/create-lists.ts", "    ...resource,", '    ...resource,\n    digest: "",'),
      patch("adopt/create-lists.ts", "digest: observed.digest,", 'digest: "",'),
    ],
  },
  {
    name: "adopt-owned",
    does: "a resource that another file owns is adopted",
    patches: [patch("plan/settlement.ts", "!isTaken(docId)", '(docId !== "" || isTaken(docId))')],
  },
  {
    name: "deleted-adopted",
    does: "a resource that this ledger deleted is adopted when a list still shows it",
    worlds: ["lagging-lists"],
    patches: [patch("adopt/create-lists.ts", "ledger.files.knows(docId)", "ledger.files.ownsDoc(docId)")],
  },
  {
    name: "extra-unconfirmed",
    does: "a second resource is deleted though the first was not confirmed by its own answer",
    worlds: ["lagging-lists"],
    patches: [
      patch(
        "adopt/doubted-resources.ts",
        "if (!(await hasAnswered(options, { id: own.id, docId: own.docId }, since))) return false;",
        "void hasAnswered;",
      ),
    ],
  },
  {
    name: "gone-believed",
    does: "the first 404 to an update or a delete is believed",
    worlds: ["false-404"],
    patches: [
      patch(
        "send/gone.ts",
        "  const unknownMs = ",
        '  if (answers === 0) return { judge: () => Promise.resolve("gone") };\n  const unknownMs = ',
      ),
    ],
  },
  {
    name: "short-list-believed",
    does: "a list that omits resources is believed after a lost ledger",
    worlds: ["short-lists-after-a-loss"],
    patches: [
      patch("adopt/adopt-source.ts", "(isAgreedTo ? listFound : listTwice)(", "listFound("),
      patch(
        "adopt/adopt-source.ts",
        "isAgreedTo ? undefined : findOmission(",
        "entries.length >= 0 ? undefined : findOmission(",
      ),
    ],
  },
  {
    name: "lists-believed",
    does: "a source that was adopted is not compared again when lists have caught up",
    patches: [
      patch(
        "audit/recheck.ts",
        "if (!isNow || source.isPaused()",
        "if (before.checks >= 0 || !isNow || source.isPaused()",
      ),
    ],
  },
  {
    name: "no-adoption",
    does: "a new ledger creates resources without adopting existing ones",
    patches: [
      patch(
        "adopt/adopt.ts",
        "isPending: !ledger.contacts.isAdopted(source.id) && unsearched.parts.length === 0,",
        "isPending: false,",
      ),
    ],
  },
  {
    name: "adoption-once",
    does: "files that are unreadable when a new ledger adopts resources are never matched",
    patches: [
      patch(
        "adopt/adopt.ts",
        "state.unsearched = found.unsearched;",
        "state.unsearched = NOTHING_UNSEARCHED;",
      ),
      patch(
        "adopt/adopt-source.ts",
        'ledger.contacts.setAdopted(source.id, !unread.includes(""));',
        "ledger.contacts.setAdopted(source.id, true);",
      ),
      patch(
        "adopt/adopt-source.ts",
        "ledger.contacts.setUnsearched(source.id, unsearched);",
        "ledger.contacts.setUnsearched(source.id, NOTHING_UNSEARCHED);",
      ),
    ],
  },
  {
    name: "refill",
    does: "a service that lost most of its resources is refilled without approval",
    patches: [
      patch("plan/audit.ts", "if (missing + altered < LOSS_FILES_MIN ||", "if (missing + altered >= 0 ||"),
    ],
  },
  {
    name: "clock-trusted",
    does: "times of intents are compared by the clock as it is now, though it may have been set",
    patches: [patch("plan/settlement.ts", "each.clockOffsetMs ?? clockOffsetMs", "clockOffsetMs")],
  },
  {
    name: "delete-unreadable",
    does: "an unreadable path counts as deleted",
    patches: [
      patch(
        "plan/compared-rows.ts",
        "(skip !== undefined || (inScope(row.path) && !unseen(row.path)))",
        "(skip !== undefined || inScope(row.path))",
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
    name: "delete-first",
    does: "a replaced resource is deleted before the new one exists",
    patches: [
      patch(
        "send/create.ts",
        "  let intent = first;\n",
        "  let intent = first;\n  if (departure.row?.docId) await context.remote.delete(departure.row.docId, context.signal);\n",
      ),
    ],
  },
  {
    name: "deletes-forgotten",
    does: "deletes that a process left undone are not done by the next",
    patches: [
      patch(
        "source/source-deletes.ts",
        "const left = ledger.intents.deletes(row.id);",
        "const left = ledger.intents.deletes(-1);",
      ),
    ],
  },
  {
    name: "unsure-agreed",
    does: "an update in flight leaves its row in agreement",
    patches: [
      patch(
        "send/prepare.ts",
        'if (row !== undefined) ledger.files.setState(row.id, "unsure");',
        "void row;",
      ),
      patch("send/change.ts", 'if (reply.acted === "maybe") sure = false;', "void sure;"),
    ],
  },
  {
    name: "torn-reads",
    does: "a file's facts are taken after it was read, and not before as well",
    patches: [
      patch(
        "read/read.ts",
        'if (filled < before.size || differs(before, fstatSync(fd))) return { kind: "torn" };',
        "Object.assign(before, fstatSync(fd));",
      ),
      patch(
        "read/read.ts",
        'if (filled < before.size || differs(before, await handle.stat())) return { kind: "torn" };',
        "Object.assign(before, await handle.stat()); void differs;",
      ),
    ],
  },
  {
    name: "unsuccess-done",
    does: "`success: false` in a 200 counts as done",
    patches: [
      patch(
        "remote/answer.ts",
        'if (envelope.data?.success === false) return { kind: "refused", code, message: words };\n    return later',
        'if (envelope.data?.success === false && schema.safeParse({}).success) return { kind: "done", value: {} as T };\n    return later',
      ),
    ],
  },
  {
    name: "page-done",
    does: "a proxy's page with status 200 counts as done",
    patches: [
      patch(
        "remote/answer.ts",
        'if (envelope.data?.success === false) return { kind: "refused", code, message: words };\n    return later',
        'if (schema.safeParse({}).success) return { kind: "done", value: {} as T };\n    return later',
      ),
    ],
  },
  {
    name: "page-gone",
    does: "a proxy's 404 is taken for the service's word that a resource is gone",
    patches: [
      patch(
        "remote/answer.ts",
        'if (subject === "resource" && envelope.data?.success === false)',
        'if (subject === "resource")',
      ),
    ],
  },
  {
    name: "refusals-retried",
    does: "a refused request is repeated without end",
    patches: [
      patch(
        "remote/answer.ts",
        '(status >= 400 && status < 500)) return { kind: "refused", code, message: words };',
        '(status >= 400 && status < 500)) return later("no", "request");',
      ),
    ],
  },
  {
    name: "retry-after-ignored",
    does: "Retry-After is not honoured",
    patches: [patch("remote/answer.ts", /retryAfterMs: retryAfterMs\([^\n]*\),/, "retryAfterMs: undefined,")],
  },
  {
    name: "refusal-meant",
    does: "a single 401 or 403 keeps everything from being sent for a minute",
    patches: [patch("remote/pacer.ts", "? 0\n        : delayMs(", "? 60_000\n        : delayMs(")],
  },
  {
    name: "no-gate",
    does: "failures of the service do not close the gate",
    patches: [
      patch(
        "remote/pacer.ts",
        'if (state.kind === "open") return newest;',
        "if (newest >= 0) return newest;",
      ),
    ],
  },
  {
    name: "parked-for-ever",
    does: "a parked file whose time came while it was unreadable is never tried again",
    patches: [
      patch(
        "pass/compare.ts",
        "const retryParked = allParked || ((path: RelativePath) => !states.isDue(path));",
        "const retryParked = allParked;",
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
    name: "id-guessed",
    does: "a create is sent again without a list if the request for the collection's id gets no clear answer",
    patches: [
      patch(
        "adopt/create-lists.ts",
        'if (asked.why === "unsupported" || areDoubts || isLong) return undefined;',
        "if (isLong || !isLong) return undefined;",
      ),
      patch("adopt/create-lists.ts", 'if (asked.why === "unanswered") continue;', ""),
    ],
  },
  {
    name: "extra-while-adopting",
    does: "surplus resources are deleted while there are still candidates",
    patches: [patch("adopt/doubts.ts", "if (isAdopting()) {", "if (isAdopting() && doubts.length === 0) {")],
  },
  {
    name: "delete-decided-once",
    does: "a delete that waited is sent though its file was rewritten",
    patches: [
      patch(
        "source/source-deletes.ts",
        "if (isSpare === true || !isAwaited(path)) return false;",
        "return false;",
      ),
    ],
  },
  {
    name: "old-rows-trusted",
    does: "rows of an old ledger whose file is not at its path, or cannot be read, count as they were",
    patches: [
      patch(
        "adopt/take-over.ts",
        "const unmatchedUnseen = whole ?",
        "const unmatchedUnseen = whole && unseen.length < 0 ?",
      ),
    ],
  },
  {
    name: "emptied-unsearched",
    does: "emptied files of an old ledger search for no resources",
    worlds: ["replaced-since-a-backup"],
    patches: [
      patch(
        "adopt/candidates.ts",
        "if (isBlank(read.document.entry, row))",
        "if (read.document.entry.sizeBytes === 0)",
      ),
    ],
  },
  {
    name: "taken-again",
    does: "a delete whose resource a file has received is started again and again",
    patches: [patch("send/delete.ts", 'return "taken";', 'return "left";')],
  },
  {
    name: "released-deleted",
    does: "a resource that a row of an old ledger gives up is no emptied file's",
    worlds: ["replaced-since-a-backup"],
    patches: [
      patch(
        "adopt/take-over.ts",
        "Map.groupBy([...goneRows, ...released], topicOf)",
        "Map.groupBy(goneRows, topicOf)",
      ),
    ],
  },
  {
    name: "old-names-trusted",
    does: "rows of an old ledger are compared with whatever file has their name now",
    patches: [
      patch(
        "adopt/find-candidates.ts",
        "whole && isAgreed && (await followFiles",
        "whole && scan.root === undefined && (await followFiles",
      ),
    ],
  },
  {
    name: "root-exchanged",
    does: "when another folder replaced the source's, its files are not matched with resources",
    patches: [
      patch("pass/pass.ts", "if (isAnother) ledger.contacts.distrust(id);", ""),
      patch("source/checking.ts", "if (plan.newRoot) contact.suspect();", ""),
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
      patch("pass/compare.ts", "for (const path of changed) source.checkAgain(path);", "void changed;"),
    ],
  },
  {
    name: "list-trusted",
    does: "a list alone decides which resource stays, and a deleted resource is adopted from a list that still shows it",
    worlds: ["lagging-lists"],
    patches: [
      patch("adopt/create-lists.ts", "ledger.files.knows(docId)", "ledger.files.ownsDoc(docId)"),
      patch(
        "adopt/doubted-resources.ts",
        "if (!(await hasAnswered(options, { id: own.id, docId: own.docId }, since))) return false;",
        "void hasAnswered;",
      ),
    ],
  },
  {
    name: "mounts-forgotten",
    does: "files below a disk that was unmounted count as deleted",
    worlds: ["remounts"],
    patches: [
      patch("rules/sub-mounts.ts", "if (options.hasFiles(path)) close(path, UNMOUNTED);\n        else ", ""),
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
    name: "held-back-uncounted",
    does: "a file held back because it is written to continually counts as one in agreement",
    worlds: ["growing-files", "asked-for-status"],
    patches: [patch("agenda/path-states.ts", "counts[countedNow(path)] += 1;", "void countedNow;")],
  },
  {
    name: "growth-unnoticed",
    does: "a file that grows every few seconds is sent each time",
    worlds: ["growing-files"],
    patches: [patch("agenda/settle.ts", "const APPEND_GAP_MS = 15_000;", "const APPEND_GAP_MS = 1500;")],
  },
  {
    name: "burst-unfinished",
    does: "deletes are sent before the burst that they belong to is over",
    worlds: ["troubled-and-emptied"],
    patches: [
      patch("pass/burst.ts", "const isOver = wasOver && nowMs >= endMs;", "const isOver = endMs > 0;"),
    ],
  },
  {
    name: "two-states",
    does: "paths in flight are read again after they were compared with a snapshot",
    worlds: ["there-and-back"],
    patches: [patch("agenda/jobs.ts", " ?? sinceFiles.get(entry.ino).find(isOther);", ";")],
  },
  {
    name: "slow-failed",
    does: "a service that is still working on the first request counts as one that failed, and the next try has another key",
    worlds: ["slow-work"],
    patches: [
      patch(
        "send/follow.ts",
        "if (isInFlight !== true) return false;",
        "if (retryAfterMs > 0) return false;",
      ),
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
        "queue/lines.ts",
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
        "plan/audit.ts",
        "if (!isOneOf(listed.digest, listed.plainDigest, row.digest, row.storedDigest))",
        "if (!isOneOf(listed.digest, listed.plainDigest, row.digest, null))",
      ),
    ],
  },
  {
    name: "adoptions-at-once",
    does: "two sources of one owner adopt at the same time",
    worlds: ["one-owner"],
    patches: [
      patch("adopt/adopt.ts", "context.adoptions.run(scope,", "context.adoptions.run(`${source.id}`,"),
    ],
  },
  {
    name: "ignore-at-once",
    does: "an ignore file takes effect although it may be half-written",
    worlds: ["ignore-files"],
    patches: [
      patch("rules/ignore-settling.ts", "if (nowMs - sinceMs >= restMs) {", "if (nowMs >= sinceMs) {"),
    ],
  },
  {
    name: "troubled-uncounted",
    does: "files that failed or are parked do not count as files of their folder",
    worlds: ["troubled-and-emptied"],
    patches: [
      patch(
        "pass/brake-facts.ts",
        "filesBefore: ledger.sources.withResource(id) - row.kept,",
        "filesBefore: row.agreed + row.unsure + row.held,",
      ),
    ],
  },
  {
    name: "adopted-again",
    does: "when adoption is repeated, files in agreement are candidates too",
    worlds: ["partial-adoption"],
    patches: [
      patch("adopt/find-candidates.ts", "const isOld = whole || isAgain;", "const isOld = whole;"),
      patch(
        "adopt/find-candidates.ts",
        '(isAgain && (row.state === "agreed" ? !isUncompared : !isWithin(row.path, before.parts))) ||',
        "",
      ),
      patch(
        "adopt/find-candidates.ts",
        "(!isAgain || isWithin(path, before.parts)) && !isBusy(path);",
        "!isBusy(path);",
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
        "pass/rules-key.ts",
        'const folderDescription = rules.folderDescription(path) ?? "";',
        'const folderDescription = String(path === "");',
      ),
    ],
  },
  {
    name: "metadata-of-the-list-trusted",
    does: "a file that takes over a resource counts as having the metadata that it should have",
    worlds: ["metadata"],
    patches: [
      patch(
        "send/observe.ts",
        "if (metadataHash === undefined || metadataHash === listedHash) return observed;",
        'if (listedHash !== "") return observed;',
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
        "source.answered() < waiting.ask) return;",
        "source.answered() < waiting.ask - 1) return;",
      ),
    ],
  },
];
