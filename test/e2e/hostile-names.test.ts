import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { kbsync } from "./program.ts";

/** Clears the screen, writes to the clipboard, sets the title, reverses the reading order, starts a C1 sequence. */
const HOSTILE = "\u001b[2J\u001b]52;c;ZXZpbA==\u0007\u001b]0;owned\u0007\u202egpj.exe\u009b31m";
// oxlint-disable-next-line no-control-regex -- they are what must not reach the terminal
const OBEYED = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-hostile-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

it("prints no control sequence from a document or a file name, and loses none in JSON", async () => {
  const docs = join(folder, "docs");
  mkdirSync(docs);
  const name = `${HOSTILE}\nall in agreement.md`;
  writeFileSync(join(docs, name), `# ${HOSTILE} heron\n\nThe heron ${HOSTILE} waits by the river.\n`);
  writeFileSync(join(docs, `${HOSTILE}.bin.md`), Buffer.from([0xff, 0xfe, 0x00, 0x01]));
  const common = ["--state-dir", join(folder, "state")];
  const run = (...args: readonly string[]) => kbsync([...args, ...common]);

  const outputs = [
    await run("sync", docs),
    await run("search", "heron"),
    await run("search", "heron", "--json"),
    await run("why", join(docs, name)),
    await run("status"),
    await run("log"),
    await run("ask", "Where does the heron wait?"),
    await run("wait", join(docs, `${HOSTILE} missing.md`)),
    await run("search", "heron", "--doc", join(docs, `${HOSTILE} missing.md`)),
  ];
  for (const { stdout, stderr } of outputs) {
    expect(stdout).not.toMatch(OBEYED);
    expect(stderr).not.toMatch(OBEYED);
    expect(stdout).not.toMatch(/^all in agreement/m);
  }
  expect(outputs[1]?.stdout).toContain(String.raw`\u001b[2J`);
  const { results } = JSON.parse(outputs[2]?.stdout ?? "") as {
    results: { path: string; content: string }[];
  };
  expect(results[0]?.path).toContain(name);
  expect(results[0]?.content).toContain(HOSTILE);
});
