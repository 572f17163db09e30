import { describe, expect, it } from "vitest";
import { backupText } from "../../../src/cli/commands/backup.ts";
import { doctorText } from "../../../src/cli/commands/doctor.ts";
import { restoreText } from "../../../src/cli/commands/restore.ts";

const finding = {
  check: "store-words",
  level: "damage",
  subject: "/s/kb.sqlite",
  message: "2 chunks are found by no word",
  remedy: "Restore a backup.",
} as const;

describe("what doctor says", () => {
  it("kbsync doctor prints a line for each check where all is sound", () => {
    const text = doctorText([
      { check: "ledger", sound: true, seen: "3 files", findings: [] },
      { check: "store", sound: true, seen: "none yet", findings: [] },
    ]);
    expect(text).toBe("ok       ledger   3 files\nok       store    none yet\n");
  });

  it("names damage and warnings, each with what to do", () => {
    const warning = { ...finding, level: "warning", message: "1 file is not known" } as const;
    const text = doctorText([
      { check: "store", sound: false, seen: "3 documents", findings: [finding] },
      { check: "uploads", sound: true, seen: "1 file", findings: [warning] },
    ]);
    expect(text.split("\n")).toEqual([
      "damaged  store    3 documents",
      "         2 chunks are found by no word",
      "         → Restore a backup.",
      "ok       uploads  1 file",
      "         warning: 1 file is not known",
      "         → Restore a backup.",
      "",
    ]);
  });
});

it("a backup says what it lacks", () => {
  const missing = Array.from({ length: 12 }, (_, at) => ({
    path: `service/uploads/${at}`,
    reason: "it is not there",
  }));
  const text = backupText({ path: "/b", files: 3, bytes: 2_500_000, missing });
  expect(text).toContain("backed up 3 files, 3 MB, to /b\n");
  expect(text).toContain("not in it: service/uploads/9 (it is not there)\n… and 2 more\n");
  expect(backupText({ path: "/b", files: 3, bytes: 10, missing: [] })).toBe(
    "backed up 3 files, 1 kB, to /b\n",
  );
});

it.each([
  [{}, undefined],
  [{ revoked: 1 }, "what was withdrawn since the backup was made stays withdrawn: 1 key revoked"],
  [
    { revoked: 1200, endEarlier: 1, narrowed: 2 },
    "what was withdrawn since the backup was made stays withdrawn: 1,200 keys revoked, 1 key with an earlier end, 2 keys with fewer scopes",
  ],
  [
    { problem: "there was no store here before" },
    "keys that were revoked after the backup was made are valid again, for there was no store here before",
  ],
  [{ problem: "there was no store here before", valid: 0 }, undefined],
])("a restore says what became of keys: %o", (reported, words) => {
  const manifest = { format: 1, kbsync: "1", madeAt: "2026-01-02T03:04:05Z", stateDir: "/s" } as const;
  const keys = { problem: null, revoked: 0, endEarlier: 0, narrowed: 0, valid: 3, ...reported };
  const report = {
    manifest: { ...manifest, files: [], missing: [] },
    notRestored: [],
    files: 3,
    bytes: 10,
    previousState: null,
  };
  const text = restoreText({ ...report, prepared: keys });
  expect(text.split("\n").find((line) => line.includes("key"))).toEqual(words);
});

it("a restore says of when it is and where the old files are", () => {
  const manifest = {
    format: 1,
    kbsync: "1",
    madeAt: "2026-01-02T03:04:05Z",
    stateDir: "/s",
    files: [],
    missing: [],
  } as const;
  const report = {
    manifest: { ...manifest, files: [], missing: [] },
    notRestored: [],
    files: 3,
    bytes: 10,
    previousState: "/s/before",
    prepared: null,
  };
  expect(restoreText(report)).toContain(
    "restored 3 files, 1 kB, of 2026-01-02T03:04:05Z\nthe previous state is in /s/before\n",
  );
  expect(restoreText({ ...report, previousState: null })).not.toContain("kept in");
  expect(restoreText(report)).not.toContain("key");
  const lost = { path: "service/uploads/a", reason: "it is missing" };
  expect(restoreText({ ...report, notRestored: [lost] })).toContain(
    "1 file not restored, damaged or missing in the backup:\nnot restored: service/uploads/a (it is missing)\n",
  );
});
