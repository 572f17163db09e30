import { hash } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
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

/** What is found of the files that the store knows, `options` beside. */
async function found(known: Parameters<typeof checkUploads>[1], quick = false): Promise<string[]> {
  const findings = await checkUploads(folder, known, { quick, signal });
  return findings.map(({ level, message }) => `${level}: ${message}`);
}

it("nothing is found of files that are as they were received, one that a crash left where it arrived among them", async () => {
  await writeFile(join(folder, "kept"), "tide");
  await writeFile(join(folder, "incoming", "late"), "moon");
  expect(await found([upload("kept", "tide"), upload("late", "moon")])).toEqual([]);
});

it("what is missing, of another length, of other bytes or unknown is told, other bytes not where sizes alone are compared", async () => {
  await writeFile(join(folder, "short"), "tid");
  await writeFile(join(folder, "other"), "tyde");
  await writeFile(join(folder, "stray"), "?");
  const known = ["gone", "short", "other"].map((token) => upload(token, "tide"));
  const bytes = "damage: the uploaded file other.txt has other bytes than were received";
  const rest = [
    "damage: the uploaded file gone.txt is missing",
    "damage: the uploaded file short.txt has 3 bytes, expected 4",
  ];
  const stray = "warning: 1 files lie in the folder of uploads that the store does not know, stray for one";
  expect(await found(known)).toEqual([...rest, bytes, stray]);
  expect(await found(known, true)).toEqual([...rest, stray]);
});

it("no more than twenty files are named", async () => {
  expect(await found(Array.from({ length: 25 }, (_, at) => upload(`${at}`, "tide")))).toHaveLength(20);
});
