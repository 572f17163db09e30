import { hash } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { KnownUpload } from "../../../src/kb/store/maintenance.ts";
import { checkUploads } from "../../../src/kb/uploads/check-files.ts";

const { signal } = new AbortController();
const upload = (token: string, content: string) => ({
  token,
  name: `${token}.txt`,
  sizeBytes: content.length,
  sha256: hash("sha256", content, "hex"),
});

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "kbsync-uploads-"));
  await mkdir(join(folder, "incoming"));
});
afterEach(() => rm(folder, { recursive: true }));

/** Checks the files that the store knows; returns the findings as lines. */
async function found(known: readonly KnownUpload[], quick = false): Promise<string[]> {
  const findings = await checkUploads(folder, () => known, { quick, signal });
  return findings.map(({ level, message }) => `${level}: ${message}`);
}

it("finds nothing wrong with intact files, nor with one that a crash left in the incoming folder", async () => {
  await writeFile(join(folder, "stored"), "tide");
  await writeFile(join(folder, "incoming", "late"), "moon");
  expect(await found([upload("stored", "tide"), upload("late", "moon")])).toEqual([]);
});

it("reports files that are missing, of another size, changed or unknown; a quick check reports no changed bytes", async () => {
  await writeFile(join(folder, "short"), "tid");
  await writeFile(join(folder, "other"), "tyde");
  await writeFile(join(folder, "stray"), "?");
  const known = ["gone", "short", "other"].map((token) => upload(token, "tide"));
  const bytes = "damage: the content of the uploaded file other.txt differs from what was received";
  const rest = [
    "damage: the uploaded file gone.txt is missing",
    "damage: the uploaded file short.txt has 3 bytes, expected 4",
  ];
  const stray = "warning: the folder of uploads has a file that the store does not know, for example stray";
  expect(await found(known)).toEqual([...rest, bytes, stray]);
  expect(await found(known, true)).toEqual([...rest, stray]);
});

it("names at most twenty damaged files", async () => {
  expect(await found(Array.from({ length: 25 }, (_, at) => upload(`${at}`, "tide")))).toHaveLength(20);
});

it("does not report files that come and go while it compares", async () => {
  await writeFile(join(folder, "new"), "tide");
  await writeFile(join(folder, "removed"), "moon");
  const reads = [[upload("removed", "moon"), upload("going", "wave")], [upload("new", "tide")]];
  const findings = await checkUploads(folder, () => reads.shift() ?? [], { signal });
  expect(findings).toEqual([]);
});
