import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openFiles } from "../../../src/kb/uploads/open-files.ts";
import { bytesOf } from "./file-store-contract.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "kbsync-open-"));
});
afterEach(() => rm(folder, { recursive: true }));
const log = { error: () => undefined };
const receive = (store: Awaited<ReturnType<typeof openFiles>>) =>
  store.receive("one", bytesOf("words"), 100, () => new Error("too large"));

it("uploads have the state folder to themselves, and share a folder of its own", async () => {
  const own = await openFiles(undefined, folder, log);
  await receive(own);
  expect(await (await openFiles(undefined, folder, log)).recover(async () => false)).toBe(1);
  const storage = { kind: "folder", path: join(folder, "files") } as const;
  const shared = await openFiles(storage, folder, log);
  await receive(shared);
  expect(await (await openFiles(storage, folder, log)).recover(async () => false)).toBe(0);
  expect(await readdir(join(folder, "files", "incoming"))).toEqual(["one"]);
});

it("names the setting where a folder cannot be used", async () => {
  const path = join(folder, "file");
  await writeFile(path, "");
  await expect(openFiles({ kind: "folder", path }, folder, log)).rejects.toMatchObject({
    code: "state_unusable",
    subject: path,
    hint: expect.stringContaining("service.files"),
  });
});
