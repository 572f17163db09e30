import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { kbsync, type Running, startUp, stop, temporaryFolder, until } from "./program.ts";

const FILES = 150;
const temporary = temporaryFolder("backup");
const docs = join(temporary.path, "docs");
const state = join(temporary.path, "state");
const early = join(temporary.path, "early");
const late = join(temporary.path, "late");
let up: Running;

const run = (...args: string[]) => kbsync([...args, "--state-dir", state]);
const write = (name: string, text: string): void => writeFileSync(join(docs, name), text);
const Verified = z.object({ findings: z.array(z.unknown()), foreign: z.number(), left: z.number() });
const Doctor = z.object({
  sound: z.boolean(),
  checks: z.array(z.object({ check: z.string(), sound: z.boolean(), findings: z.array(z.unknown()) })),
});

/** Syncs, and shows that each file has one resource and nothing else is there. */
async function expectAgreement(stateDir: string): Promise<void> {
  const synced = await kbsync(["sync", docs, "--state-dir", stateDir]);
  expect([synced.code, synced.stderr]).toEqual([0, expect.any(String)]);
  const verified = await kbsync(["verify", docs, "--state-dir", stateDir, "--json"]);
  expect(Verified.parse(JSON.parse(verified.stdout))).toEqual({ findings: [], foreign: 0, left: 0 });
  expect(verified.code).toBe(0);
  const doctor = await kbsync(["doctor", "--state-dir", stateDir]);
  expect([doctor.code, doctor.stdout]).toEqual([
    0,
    expect.stringContaining(`${readdirSync(docs).length} documents`),
  ]);
}

beforeAll(async () => {
  mkdirSync(docs);
  for (let at = 0; at < FILES; at++)
    write(`note-${at}.md`, `# Note ${at}\n\nThe moon and the number ${at}.\n`);
  // A file that is uploaded: too odd to be sent as content.
  write("table.csv", "a,b\n1,2\n");
  up = await startUp(["up", docs, "--tier", "fastest", "--port", "0"], state);
});
afterAll(async () => {
  await stop(up);
  temporary.remove();
});

it("a backup is made while the first pass runs, and while the folder changes", async () => {
  // As soon as both halves have something.
  await until("the first resources", () => (existsSync(join(state, "ledger.db")) ? true : undefined));
  expect((await run("backup", early)).code).toBe(0);
  await until("agreement", () => (up.output.stdout.includes(" searchable, ") ? true : undefined));
  expect((await run("backup", late)).code).toBe(0);
  expect(readdirSync(late)).toContain("manifest.json");
  expect((await run("backup", late)).stderr).toContain("already");
});

it("refuses a restore while kbsync runs, or over what is there", async () => {
  const running = await run("restore", late, "--force");
  expect([running.code, running.stderr]).toEqual([75, expect.stringContaining(`process ${up.child.pid}`)]);
  await stop(up);
  expect((await run("restore", late)).stderr).toContain("--force");
});

it("a restored older state is brought to agreement with the folder, and nothing is there twice", async () => {
  // What the daemon had sent after the backup, and what changed while nothing ran.
  up = await startUp(["up", docs, "--tier", "fastest", "--port", "0"], state);
  for (const at of [1, 2, 3]) write(`note-${at}.md`, `# Note ${at}\n\nChanged since.\n`);
  for (const at of [1, 2, 3]) write(`new-${at}.md`, `# New ${at}\n\nMade since ${at}.\n`);
  rmSync(join(docs, "note-10.md"));
  renameSync(join(docs, "note-20.md"), join(docs, "moved.md"));
  const waited = await run("wait");
  expect([waited.code, waited.stdout]).toEqual([0, ""]);
  await stop(up);
  write("note-30.md", "# Note 30\n\nChanged while nothing ran.\n");
  for (const from of [late, early]) {
    const restored = await run("restore", from, "--force");
    expect([restored.code, restored.stderr]).toEqual([0, ""]);
    expect(restored.stdout).toContain("the previous state is in");
    await expectAgreement(state);
  }
});

it("restores into another state folder, which gets a key of its own and is approved before it writes", async () => {
  const elsewhere = join(temporary.path, "elsewhere");
  const restored = await kbsync(["restore", late, "--state-dir", elsewhere]);
  expect([restored.code, restored.stderr]).toEqual([0, ""]);
  expect(existsSync(join(late, "pauthkey"))).toBe(false);
  const held = await kbsync(["sync", docs, "--state-dir", elsewhere]);
  expect([held.code, held.stdout]).toEqual([4, expect.stringContaining("this state folder was copied")]);
  const listed = await kbsync(["approve", "--state-dir", elsewhere]);
  const token = /--token (\w+)/.exec(listed.stdout)?.[1] ?? "none";
  expect(await kbsync(["approve", "--token", token, "--state-dir", elsewhere])).toMatchObject({ code: 0 });
  await expectAgreement(elsewhere);
});

it("does not restore a damaged backup, and neither backs up nor passes a damaged state in doctor", async () => {
  const damage = (path: string): void => {
    const file = openSync(path, "r+");
    writeSync(file, Buffer.alloc(4096, 7), 0, 4096, 8192);
    closeSync(file);
  };
  damage(join(late, "service", "kb.sqlite"));
  const refused = await run("restore", late, "--force");
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("service/kb.sqlite")]);

  damage(join(state, "service", "kb.sqlite"));
  const reported = await run("doctor", "--json");
  const { sound, checks } = Doctor.parse(JSON.parse(reported.stdout));
  expect([reported.code, sound]).toEqual([1, false]);
  expect(checks.find(({ check }) => check === "store")?.findings).not.toEqual([]);
  const words = await run("doctor");
  expect(words.stdout).toMatch(/damaged +store[\s\S]*kbsync restore/);
  const backup = await run("backup", join(temporary.path, "of-damaged"));
  expect([backup.code, existsSync(join(temporary.path, "of-damaged"))]).toEqual([1, false]);
});
