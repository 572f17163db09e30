import { describe, expect, it } from "vitest";
import type { OpenIntent } from "../../../../src/wire/daemon-files.ts";
import type { FileRow } from "../../../../src/sync/ledger/files/rows.ts";
import type { SourceRow } from "../../../../src/sync/ledger/sources/rows.ts";
import type { Verdict } from "../../../../src/sync/scan/rules/rules.ts";
import { labelOf } from "../../../../src/sync/send/observe.ts";
import type { ReadOutcome, SourceDocument } from "../../../../src/sync/scan/read/outcome.ts";
import type { Difference, FileState, ScanEntry } from "../../../../src/sync/plan/model.ts";
import { nextStep, stepAfterReading, withBlocker } from "../../../../src/sync/operate/why/next.ts";

const ENTRY: ScanEntry = { path: "a.md", sizeBytes: 4, mtimeMs: 1, ctimeMs: 1, ino: 1 };
const SHAPE = {
  kind: "content",
  tier: "fastest",
  ownerId: "owner",
  settings: { strategy: "recursive", chunkSize: 1000, chunkOverlap: 100 },
} as const;
const OTHER: ScanEntry = { ...ENTRY, path: "other.md", ino: 2 };

function row(state: FileState, more: Partial<FileRow> = {}): FileRow {
  const names = { title: "A", label: labelOf("A", "a.md") };
  const facts = { id: 1, docId: "doc", rulesKey: 0, hash: "h", digest: "d", sent: "", extractorVersion: 1 };
  const whole = { ...ENTRY, ...facts, ...names, state, shape: SHAPE, fileUrl: null, metadataHash: null };
  return { ...whole, error: null, retryAtMs: null, ...more } as FileRow;
}

function difference(more: Partial<Difference> = {}): Difference {
  const none = { moves: [], candidates: [], returned: [], gone: [], forgotten: [], refused: [], skipped: [] };
  return { ...none, uncompared: [], missingBusy: 0, hidden: 0, ...more };
}

function document(more: Partial<SourceDocument> = {}): ReadOutcome {
  const recipe = { title: "A", description: "a.md", extractorVersion: 1, ...SHAPE };
  const facts = { kind: "content", content: "text", digest: "d", hash: "h", sizeBytes: 4, entry: ENTRY };
  return { kind: "document", document: { ...facts, recipe, ...more } as unknown as SourceDocument };
}

const candidates = (known: FileRow | undefined, from?: string): Difference =>
  difference({
    candidates: [
      { entry: OTHER, known: undefined },
      { entry: ENTRY, known, ...(from !== undefined && { from }) },
    ],
  });
const intent = (kind: OpenIntent["kind"]): OpenIntent => ({
  kind,
  docId: null,
  atMs: null,
  attempts: 1,
  message: null,
});

/** What a case says of a file; the rest is unremarkable. */
interface CaseFacts {
  readonly difference?: Difference | undefined;
  readonly verdict?: Verdict;
  readonly what?: string;
  readonly living?: FileRow;
  readonly held?: readonly FileRow[];
  readonly holdReason?: string;
  readonly intents?: readonly OpenIntent[];
  readonly read?: ReadOutcome;
  readonly keeps?: boolean;
}

function stepOf(facts: CaseFacts) {
  const {
    verdict = { wanted: true },
    what,
    living,
    held = [],
    holdReason,
    intents = [],
    read,
    keeps = false,
  } = facts;
  const compared = "difference" in facts ? facts.difference : difference();
  const candidate = compared?.candidates.find(({ entry: { path } }) => path === "a.md");
  return nextStep({
    path: "a.md",
    keeps,
    verdict,
    disk: what === undefined ? {} : { what },
    difference: compared,
    known: { living, held, intents, row: { holdReason } as unknown as SourceRow },
    afterReading:
      candidate &&
      read &&
      stepAfterReading({ read, row: candidate.known as FileRow | undefined, from: candidate.from }),
  });
}

interface Case {
  readonly name: string;
  readonly facts: CaseFacts;
  readonly action: string;
  readonly why: RegExp;
}

describe("the next step for a file", () => {
  it.each<Case>([
    {
      name: "of a missing folder is none",
      facts: { difference: undefined, living: row("agreed") },
      action: "nothing",
      why: /folder is missing/,
    },
    {
      name: "with a create that was not acknowledged is to wait, whatever else is known",
      facts: {
        intents: [intent("doubt"), intent("create")],
        difference: candidates(undefined),
        read: document(),
      },
      action: "wait",
      why: /it was sent, and is not acknowledged/,
    },
    {
      name: "whose create is in doubt is the ordinary one",
      facts: { intents: [intent("doubt")], difference: candidates(row("agreed")), read: document() },
      action: "touch",
      why: /but nothing that is sent$/,
    },
    {
      name: "that is refused is refused for its own reason",
      facts: {
        difference: difference({
          refused: [
            { path: "other.md", reason: "not this" },
            { path: "a.md", reason: "too large" },
          ],
        }),
      },
      action: "refuse",
      why: /^too large$/,
    },
    {
      name: "that is left out is skipped for its own reason",
      facts: {
        difference: difference({
          skipped: [
            { entry: OTHER, reason: "not this" },
            { entry: ENTRY, reason: "an archive" },
          ],
        }),
      },
      action: "skip",
      why: /^an archive$/,
    },
    {
      name: "that another file's refusal, skip, check and end do not concern is none",
      facts: {
        difference: difference({
          refused: [{ path: "other.md", reason: "too large" }],
          skipped: [{ entry: OTHER, reason: "an archive" }],
          candidates: [{ entry: OTHER, known: undefined }],
          gone: [row("agreed", { path: "other.md" })],
          forgotten: [row("failed", { path: "other.md" })],
          returned: [row("held", { path: "other.md" })],
        }),
        read: document(),
      },
      action: "nothing",
      why: /no such file/,
    },
    {
      name: "that is gone is to delete its resource",
      facts: { difference: difference({ gone: [row("agreed")] }), living: row("agreed") },
      action: "delete",
      why: /^the file is gone, and/,
    },
    {
      name: "that is gone is none in a source that deletes nothing",
      facts: { difference: difference({ gone: [row("agreed")] }), living: row("agreed"), keeps: true },
      action: "nothing",
      why: /its document stays/,
    },
    {
      name: "that a rule leaves out is to delete its resource, by that rule",
      facts: {
        difference: difference({ gone: [row("agreed")] }),
        verdict: { wanted: false, reason: "hidden" },
      },
      action: "delete",
      why: /^the rules leave it out now \(hidden\)/,
    },
    {
      name: "whose delete is held is to wait for a person",
      facts: { difference: difference({ gone: [row("held")] }), held: [row("held")], holdReason: "too many" },
      action: "hold",
      why: /kbsync approve.*too many/,
    },
    {
      name: "that is gone without a resource drops its row",
      facts: { difference: difference({ forgotten: [row("failed", { docId: null })] }) },
      action: "nothing",
      why: /there is no document of it/,
    },
    {
      name: "that is back as it was drops its held delete",
      facts: { difference: difference({ returned: [row("held")] }) },
      action: "nothing",
      why: /held delete is dropped/,
    },
    {
      name: "whose delete is noted is that delete",
      facts: { intents: [intent("delete")] },
      action: "delete",
      why: /still to be deleted/,
    },
    {
      name: "that is no file is none, and says what is there",
      facts: { what: "a FIFO" },
      action: "nothing",
      why: /^it is a FIFO/,
    },
    {
      name: "that is left out and has no row is none, by the rule",
      facts: { verdict: { wanted: false, reason: "hidden" } },
      action: "nothing",
      why: /^hidden$/,
    },
    {
      name: "in agreement is none",
      facts: { living: row("agreed"), what: "a FIFO" },
      action: "nothing",
      why: /nothing has changed/,
    },
    {
      name: "that failed is none until a person retries it, with the reason",
      facts: { living: row("failed", { error: { code: "x", message: "too odd" } }) },
      action: "nothing",
      why: /failed \(too odd\).*kbsync retry/,
    },
    {
      name: "that failed for no noted reason says that",
      facts: { living: row("failed") },
      action: "nothing",
      why: /no reason noted/,
    },
    {
      name: "that was skipped is none, with the reason",
      facts: { living: row("skipped", { error: { code: "x", message: "binary" } }) },
      action: "nothing",
      why: /left out: binary/,
    },
    {
      name: "that is parked is to wait for its time",
      facts: { living: row("parked", { retryAtMs: 0 }) },
      action: "wait",
      why: /postponed, and is tried again at 1970-01-01T00:00:00.000Z$/,
    },
    {
      name: "that is parked without a time is to wait nevertheless",
      facts: { living: row("parked") },
      action: "wait",
      why: /tried again later/,
    },
    {
      name: "whose update was not acknowledged is that update",
      facts: { living: row("unsure") },
      action: "update",
      why: /is not acknowledged/,
    },
    {
      name: "whose held delete alone is left is to wait",
      facts: { living: row("doomed") },
      action: "hold",
      why: /delete waits/,
    },
    {
      name: "that was not read yet is to read it",
      facts: { difference: candidates(undefined) },
      action: "wait",
      why: /read first/,
    },
    {
      name: "that changed while it was read is to wait",
      facts: { difference: candidates(undefined), read: { kind: "torn" } },
      action: "wait",
      why: /changed while/,
    },
    {
      name: "that vanished is none",
      facts: { difference: candidates(undefined), read: { kind: "gone" } },
      action: "nothing",
      why: /vanished/,
    },
    {
      name: "without a row and of an unsupported kind is to skip it",
      facts: { difference: candidates(undefined), read: { kind: "skipped", reason: "binary" } },
      action: "skip",
      why: /^binary$/,
    },
    {
      name: "without a resource and of an unsupported kind is to skip it",
      facts: {
        difference: candidates(row("failed", { docId: null })),
        read: { kind: "skipped", reason: "binary" },
      },
      action: "skip",
      why: /^binary$/,
    },
    {
      name: "with a resource and of a kind that is no longer supported is to refuse it",
      facts: { difference: candidates(row("agreed")), read: { kind: "skipped", reason: "binary" } },
      action: "refuse",
      why: /^binary$/,
    },
    {
      name: "that cannot become a resource is to refuse it",
      facts: { difference: candidates(undefined), read: { kind: "refused", reason: "damaged" } },
      action: "refuse",
      why: /^damaged$/,
    },
    {
      name: "that cannot be read is to wait, with the system's code",
      facts: { difference: candidates(undefined), read: { kind: "unreadable", code: "EACCES" } },
      action: "wait",
      why: /cannot be read: permission denied \(EACCES\)/,
    },
    {
      name: "that is empty and new is to skip it",
      facts: {
        difference: candidates(undefined),
        read: document({ entry: { ...ENTRY, sizeBytes: 0 } }),
      },
      action: "skip",
      why: /the file is empty/,
    },
    {
      name: "that is new is to create its resource",
      facts: { difference: candidates(undefined), read: document() },
      action: "create",
      why: /no document of it$/,
    },
    {
      name: "that was parked before it had a resource is to create it, and says when it is tried",
      facts: {
        difference: candidates(row("parked", { docId: null, retryAtMs: 0 })),
        read: document(),
      },
      action: "create",
      why: /no document of it; it was postponed, and is tried again at 1970-01-01T00:00:00.000Z$/,
    },
    {
      name: "that is tried again though no row is parked says nothing of a time",
      facts: { difference: candidates(row("failed", { retryAtMs: 0 })), read: document() },
      action: "touch",
      why: /but nothing that is sent$/,
    },
    {
      name: "that was edited is to update its resource",
      facts: { difference: candidates(row("agreed")), read: document({ hash: "other" }) },
      action: "update",
      why: /content differs/,
    },
    {
      name: "that was renamed is to keep its resource, and names the path before",
      facts: { difference: candidates(row("agreed"), "old.md"), read: document() },
      action: "move",
      why: /keeps its id \(it was old\.md\)$/,
    },
  ])("the next step for a file $name", ({ facts, action, why }) => {
    expect(stepOf(facts)).toEqual({ action, why: expect.stringMatching(why) as string });
  });

  const PAUSED = { code: "paused", reason: "paused" } as const;
  it("the next step for a file waits for a blocker of the source, and names the following step", () => {
    expect(withBlocker(stepOf({ difference: difference({ gone: [row("agreed")] }) }), PAUSED)).toEqual({
      action: "wait",
      why: expect.stringMatching(/^paused; after that: delete, the file is gone/) as string,
    });
  });

  it("the next step for a file has nothing to do for an unchanged file despite a blocker of the source", () => {
    const step = stepOf({ living: row("agreed") });
    expect(withBlocker(step, PAUSED)).toEqual(step);
  });
});
