import { describe, expect, it } from "vitest";
import type { SourceStatus } from "../../../src/wire/daemon-status.ts";
import { exitCodeOfPass } from "../../../src/cli/output/exit-code.ts";
import { vectorLine } from "../../../src/cli/commands/sync.ts";
import { embeddedLine, passSummary, troubleLines } from "../../../src/cli/commands/follow.ts";
import { paceWords, statusText } from "../../../src/cli/commands/status.ts";
import { IDLE_STATUS, sourceStatus } from "../../fakes/status.ts";
import type { ListedFile } from "../../../src/wire/daemon-files.ts";

const source = (more: Partial<SourceStatus>): SourceStatus => sourceStatus("/docs", 2, more);
const summary = (...sources: SourceStatus[]): string => {
  const progress = { ...IDLE_STATUS.progress, done: 1, total: 1 };
  return passSummary({ ...IDLE_STATUS, sources, progress }, 1000);
};

describe("skipped files", () => {
  it("skipped files have a line of their own in the summary of a pass", () => {
    expect(summary(source({}))).toBe("synced: 2 files searchable, nothing to send\n");
    expect(summary(source({ skipped: 1200 }), source({ skipped: 3 }))).toBe(
      "synced: 4 files searchable, nothing to send\n  1,203 skipped (`kbsync status --skipped` lists them)\n",
    );
  });

  it("skipped files are counted, not named, in the status for a person", () => {
    const skipped: ListedFile[] = [
      {
        source: "/docs",
        path: "a.zip",
        state: "skipped",
        docId: null,
        code: "skipped",
        message: "archive",
        sinceMs: null,
        hasOlder: false,
      },
    ];
    const text = statusText({
      daemon: null,
      stateDir: "/state",
      service: { address: "http://127.0.0.1:1", running: true, notApplied: [] },
      sources: [source({ skipped: 1 })],
      unsynced: [],
      removed: [],
      failures: [],
      skipped,
    });
    expect(text).toContain("files    2 files searchable\nsearch   by words\nbeside   1 skipped\n");
    expect(text).not.toContain("a.zip");
    expect(text).not.toContain("failed");
  });
});

it.each([
  ["nothing is held or unreadable", []],
  [
    "2 folders and 4 files left out",
    [
      { reason: "a hidden file", files: 3, folders: 0 },
      { reason: "packages", files: 1, folders: 2 },
    ],
  ],
])("says beside the files what the rules leave out: %s", (words, leftOut) => {
  const text = statusText({
    daemon: null,
    stateDir: "/state",
    service: { address: "http://127.0.0.1:1", running: true, notApplied: [] },
    sources: [source({ leftOut: leftOut.map((each) => ({ ...each, example: "a" })) })],
    unsynced: [],
    removed: [],
    failures: [],
    skipped: [],
  });
  expect(text).toContain(`\nbeside   ${words}\n`);
  const rules =
    leftOut.length === 0
      ? []
      : [
          "left out: 3 files (a hidden file), 2 folders and 1 file (packages); `kbsync status --skipped` lists them",
        ];
  expect(
    text
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line.startsWith("left out")),
  ).toEqual(rules);
});

describe("what came of a pass", () => {
  it("the summary of a pass counts what was sent, not what was checked", () => {
    const words = (sent: number, failed = 0) => {
      const progress = { ...IDLE_STATUS.progress, done: 3, total: 3, sent, failed };
      return passSummary({ ...IDLE_STATUS, sources: [source({})], progress }, 1000);
    };
    expect(words(0)).toContain("nothing to send");
    expect(words(1)).toContain("1 change in 1 s");
    expect(words(0, 3)).toContain("nothing sent");
    expect(words(1, 3)).toContain("1 change in 1 s");
  });

  it("says of a halted source that it is, and why, and counts none of its files as searchable", () => {
    const halted = {
      halted: true,
      holdReason: "the folder is missing or is not a folder",
      searchable: 0,
      waiting: 2,
    };
    expect(summary(source(halted))).toBe(
      "1 folder halted; synced: 0 of 2 files searchable, 2 waiting, nothing to send\n" +
        "  /docs: halted, nothing is sent: the folder is missing or is not a folder\n",
    );
  });

  it("says what a person can do", () => {
    const held = { held: 2, holdReason: "the folder was emptied", remedy: "`kbsync approve` deletes them" };
    expect(summary(source(held))).toContain(
      "  /docs: deletes held: the folder was emptied (`kbsync approve` deletes them)\n",
    );
    const halted = { halted: true, holdReason: "the folder is missing", remedy: "mount it" };
    expect(summary(source(halted))).toContain(
      "  /docs: halted, nothing is sent: the folder is missing (mount it)\n",
    );
  });

  it("names the first that cannot be read, and counts the rest", () => {
    const unreadablePaths = ["a", "b/c", "d", "e"];
    expect(summary(source({ unreadable: 5, unreadablePaths }))).toContain(
      "  /docs: cannot be read: a, b/c, d and 2 more (check owner and mode)\n",
    );
    expect(summary(source({ unreadable: 1, unreadablePaths: [""] }))).toContain(
      "cannot be read: the folder itself (",
    );
    expect(summary(source({ unreadable: 1 }))).not.toContain("looked at:");
  });

  it("says why deletes are held, and that files wait", () => {
    expect(summary(source({ searchable: 1, waiting: 1, held: 9, holdReason: "9 deletes at once" }))).toBe(
      "9 deletes held; synced: 1 of 2 files searchable, 1 waiting, nothing to send\n" +
        "  /docs: deletes held: 9 deletes at once\n",
    );
  });

  it.each([
    ["all searchable", {}, 0],
    ["a failed file", { failed: 1 }, 1],
    ["something unreadable", { unreadable: 1 }, 1],
    ["a file that waits", { waiting: 1 }, 1],
    ["held deletes", { held: 1 }, 4],
    ["a failed file and held deletes", { failed: 1, held: 1 }, 1],
    ["a halted source without a file", { halted: true, files: 0, searchable: 0 }, 4],
    ["a halted source with files that wait", { halted: true, waiting: 1 }, 4],
  ])("the outcome %s of a pass has its exit status", (_name, more, code) => {
    expect(exitCodeOfPass([source({}), source(more)])).toBe(code);
  });
});

it("names troubled files under what is the matter with them, each group up to a limit", () => {
  const file = (path: string, state: ListedFile["state"], message: string): ListedFile => ({
    source: "/docs",
    path,
    docId: null,
    state,
    code: state,
    message,
    sinceMs: null,
    hasOlder: false,
  });
  const files = [
    file("a", "held", "emptied"),
    file("b", "failed", "too large"),
    file("c", "waiting", "busy"),
    file("d", "held", "emptied"),
    file("e", "held", "emptied"),
    file("f", "held", "to be deleted"),
  ];
  expect(troubleLines(files, 2)).toBe(
    "failed\n  b: too large\nwaiting\n  c: busy\nheld\n  a: emptied\n  d: emptied\n  and 2 more (`kbsync status --held` lists all)\n",
  );
  expect(troubleLines([], 2)).toBe("");
});

it("the status counts no file of a halted source as searchable", () => {
  const lost = "the service has lost 3,500 of 4,000 resources";
  const text = statusText({
    daemon: null,
    stateDir: "/state",
    service: { address: "http://127.0.0.1:1", running: true, notApplied: [] },
    sources: [source({ files: 4000, searchable: 0, waiting: 4000, halted: true, holdReason: lost })],
    unsynced: [],
    removed: [],
    failures: [],
    skipped: [],
  });
  expect(text).toContain("files    0 of 4,000 files searchable, 4,000 waiting\n");
  expect(text).not.toContain("4,000 of 4,000");
  expect(text).toContain(lost);
});

it("the status says of a service that was not asked that it was not", () => {
  const text = statusText({
    daemon: null,
    stateDir: "/state",
    service: {
      address: "https://db.example.com",
      running: null,
      notApplied: ["service.port needs a restart"],
    },
    sources: [],
    unsynced: [],
    removed: [],
    failures: [],
    skipped: [],
  });
  expect(text).toContain("service  https://db.example.com (not asked)\n");
  expect(text).toContain("config   not applied: service.port needs a restart\n");
  expect(text).toContain("nothing was synced with the state folder /state yet\n");
});

it("the status says that the service asked for a long wait, and what ends it", () => {
  const waiting = { kind: "waiting", untilMs: 0, reason: "status 503", isAsked: true } as const;
  expect(paceWords(waiting)).toMatch(
    /; trying again at [\d:]{8} as the service asks; `kbsync retry` tries now$/,
  );
});

describe("a mount below a source that is not as it was", () => {
  const warnings = [{ path: "disk", reason: "what was mounted there is gone", remedy: "mount it again" }];

  it("a mount below a source that has changed is reported with what to do, not as a matter of owner and mode", () => {
    const words = summary(source({ unreadable: 1, unreadablePaths: ["disk"], warnings }));
    expect(words).toContain("  /docs: disk: what was mounted there is gone (mount it again)\n");
    expect(words).not.toContain("owner and mode");
  });

  it("leaves what else cannot be read a line of its own", () => {
    const words = summary(source({ unreadable: 2, unreadablePaths: ["closed", "disk"], warnings }));
    expect(words).toContain("  /docs: cannot be read: closed (check owner and mode)\n");
  });
});

it("a pass of a running program ends with the share that is found by meaning, unless that is all", () => {
  expect(embeddedLine(undefined, 10)).toBe("");
  expect(embeddedLine({ files: 10, isFewer: false }, 10)).toBe("");
  expect(embeddedLine({ files: 3, isFewer: false }, 10)).toMatch(/^found by meaning: 30 %; .*\n$/);
});

it("says how many documents are not found by meaning yet", () => {
  expect(vectorLine(0)).toBe("");
  expect(vectorLine(1)).toMatch(/^1 document is not found by meaning yet: .*\n$/);
  expect(vectorLine(1000)).toMatch(/^1,000 documents are /);
});
