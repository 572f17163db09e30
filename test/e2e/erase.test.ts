import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { canaryWord, findCanaries } from "../canaries.ts";
import { agreed, type Ended, kbsync, startProgram, startUp, stop, temporaryFolder } from "./program.ts";

const temporary = temporaryFolder("erase");
const KILLS = 6;
let base: string;
let count = 0;
beforeEach(() => {
  base = join(temporary.path, `case-${++count}`);
  mkdirSync(join(base, "docs"), { recursive: true });
  writeFileSync(
    join(base, "kbsync.config.json"),
    JSON.stringify({
      service: { port: 0 },
      stateDir: "state",
      sources: [{ path: "docs", collection: "fastest" }],
      sync: { trashDays: 3 },
    }),
  );
});
afterAll(() => temporary.remove());

const run = async (...args: readonly string[]): Promise<Ended> => kbsync(args, { cwd: base });
const docs = (name: string): string => join(base, "docs", name);
const state = (): string => join(base, "state");

/** What a search finds in the other files, with the scores. */
const found = async (): Promise<object> => {
  const { stdout } = await run("search", "kiwi", "--top-k", "20", "--json");
  const { pending: _, ...answer } = JSON.parse(stdout) as { pending?: object; results: unknown[] };
  return answer;
};

/** Writes a file whose name, title, tag and text are words of their own. Returns its path and the words. */
function writeCanary(folder = "."): { path: string; words: readonly string[] } {
  const words = Array.from({ length: 4 }, canaryWord);
  const [name = "", title = "", tag = "", text = ""] = words;
  mkdirSync(docs(folder), { recursive: true });
  const path = join(folder, `${name}.md`);
  writeFileSync(
    docs(path),
    `---\ntitle: ${title}\ntags: [${tag}]\n---\n\nThe heron ${text} stands. ${"It waits. ".repeat(60)}`,
  );
  return { path, words };
}

function writeOthers(): void {
  for (let at = 0; at < 10; at++)
    writeFileSync(docs(`other-${at}.md`), `# Other ${at}\n\nThe kiwi ${at} walks.\n`);
}

describe("kbsync erase", () => {
  it("refuses a file that would be sent again, with a command that excludes and erases it", async () => {
    const { path, words } = writeCanary();
    writeOthers();
    expect(await run("sync")).toMatchObject({ code: 0 });
    const refused = await run("erase", join("docs", path));
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain("would be sent again");
    const hint = /exclude it: `(printf .* >> \S+)/.exec(refused.stderr)?.[1] ?? "";
    expect(hint).toContain(".kbsyncignore");
    writeFileSync(docs(".kbsyncignore"), `/${path}\n`);
    expect(await run("erase", join("docs", path))).toMatchObject({ code: 0 });
    rmSync(docs(".kbsyncignore"));
    rmSync(docs(path));
    expect(findCanaries(state(), words)).toEqual([]);
  });

  it("leaves no word of a deleted file in the state folder while nothing runs, and others find the same", async () => {
    const file = writeCanary();
    writeOthers();
    expect(await run("sync")).toMatchObject({ code: 0 });
    const before = await found();
    rmSync(docs(file.path));
    expect(await run("sync")).toMatchObject({ code: 0 });
    expect(findCanaries(state(), file.words)).not.toEqual([]);
    const erased = await run("erase", join("docs", file.path));
    expect(erased).toMatchObject({ code: 0 });
    expect(erased.stdout).toMatch(/^erased   1 document: the text is gone from .*\n$/);
    expect(findCanaries(state(), file.words)).toEqual([]);
    expect(await found()).toEqual(before);
    const { stdout } = await run("sync");
    expect(stdout).toMatch(/10 files, 0 changes|10 files/);
  });

  it("erases all below a folder by a running daemon, and removes the copies of killed plans", async () => {
    const files = Array.from({ length: 5 }, () => writeCanary("private"));
    writeOthers();
    // The copy of a plan whose process was killed, which the daemon removes at its start.
    mkdirSync(join(state(), "plan-99999999-a"), { recursive: true });
    const running = await startUp(["up", "--config", "kbsync.config.json"], state(), base);
    try {
      await agreed(join(base, "docs"), state(), 15);
      expect(existsSync(join(state(), "plan-99999999-a"))).toBe(false);
      rmSync(docs("private"), { recursive: true });
      mkdirSync(join(state(), "plan-99999999-b"));
      writeFileSync(join(state(), "plan-99999999-b", "ledger.db"), files[0]?.path ?? "");
      const erased = await run("erase", "docs/private", "--json");
      expect(erased).toMatchObject({ code: 0 });
      expect(JSON.parse(erased.stdout)).toEqual({ documents: 5, purged: true });
      expect(
        findCanaries(
          state(),
          files.flatMap(({ words }) => words),
        ),
      ).toEqual([]);
      await agreed(join(base, "docs"), state(), 10);
      expect(
        findCanaries(
          state(),
          files.flatMap(({ words }) => words),
        ),
      ).toEqual([]);
    } finally {
      await stop(running);
    }
  });

  it("leaves no word when it is killed at any moment and run again", async () => {
    const files = Array.from({ length: 12 }, () => writeCanary("private"));
    writeOthers();
    expect(await run("sync")).toMatchObject({ code: 0 });
    rmSync(docs("private"), { recursive: true });
    for (let kill = 0; kill < KILLS; kill++) {
      const { child } = startProgram(["erase", "docs/private"], base);
      const gone = new Promise((resolve) => child.once("exit", resolve));
      await Promise.race([gone, sleep(300 + 250 * kill)]);
      child.kill("SIGKILL");
      await gone;
    }
    expect(await run("erase", "docs/private")).toMatchObject({ code: 0 });
    expect(
      findCanaries(
        state(),
        files.flatMap(({ words }) => words),
      ),
    ).toEqual([]);
    expect(await run("sync")).toMatchObject({ code: 0 });
  });
});
