import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  closeSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import type { Worker } from "node:worker_threads";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { KbsyncError } from "../../../src/lib/failure.ts";
import { openRules } from "../../../src/sync/scan/rules/rules.ts";
import { watchSource, type Watch } from "../../../src/sync/watch/watch.ts";
import { remoteFileSystem } from "../../../src/sync/watch/network.ts";
import { startOwnThreads } from "../../idle-threads.ts";
import { addFiles, makeTree, removeTree, sourceAt, type SourceFields } from "../scan/tree.ts";

startOwnThreads();

/** A watched folder and its hints. */
interface Watched {
  readonly watch: Watch;
  /** Hints since the last `forget`; "*" is the whole source. */
  readonly hints: Set<string>;
  readonly errors: KbsyncError[];
  /** Waits until a hint covers this path. */
  sees(path: string): Promise<void>;
  forget(): void;
}

/** Waits end as soon as possible; on a busy machine they may take long. */
const PATIENT = { timeout: 15_000, interval: 5 };

let root = "";
const open: Watch[] = [];
beforeEach(() => {
  root = makeTree({});
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((watch) => watch.close()));
  removeTree(root);
});

async function watchIt(
  fields: SourceFields = {},
  at = root,
  rules = openRules(sourceAt(at, fields)),
): Promise<Watched> {
  const hints = new Set<string>();
  const errors: KbsyncError[] = [];
  let ready = false;
  const watch = await watchSource({
    root: at,
    rules,
    onDirty: (path) => hints.add(path ?? "*"),
    onError: (error) => errors.push(error),
    onReady: () => {
      ready = true;
    },
  });
  open.push(watch);
  await vi.waitUntil(() => ready, PATIENT);
  const covered = (path: string): boolean =>
    [...hints].some((hint) => hint === "*" || path === hint || path.startsWith(`${hint}/`));
  return {
    watch,
    hints,
    errors,
    sees: async (path) => {
      await vi
        .waitUntil(() => covered(path), PATIENT)
        .catch(() => {
          throw new Error(`no hint covers ${path}, only ${[...hints].join(", ")}`);
        });
    },
    forget: () => hints.clear(),
  };
}

const path = (relative: string): string => join(root, relative);

describe("a hint covers", () => {
  it("hints at a new, a changed and a deleted file", async () => {
    addFiles(root, { "b/old.md": "old" });
    const watched = await watchIt();
    writeFileSync(path("b/new.md"), "x");
    await watched.sees("b/new.md");
    watched.forget();
    appendFileSync(path("b/old.md"), "y");
    await watched.sees("b/old.md");
    watched.forget();
    unlinkSync(path("b/old.md"));
    await watched.sees("b/old.md");
    expect(watched.hints.has("*")).toBe(false);
  });

  it("hints at both names of a renamed file or folder", async () => {
    addFiles(root, { "a/x.md": "x", "a/sub/y.md": "y" });
    const watched = await watchIt();
    renameSync(path("a/x.md"), path("z.md"));
    await watched.sees("a/x.md");
    await watched.sees("z.md");
    renameSync(path("a"), path("b"));
    await watched.sees("a/sub/y.md");
    await watched.sees("b/sub/y.md");
    watched.forget();
    await vi.waitFor(() => {
      appendFileSync(path("b/sub/y.md"), "more");
      expect([...watched.hints]).toContain("b/sub/y.md");
    }, PATIENT);
  });

  it("hints at a file in new folders and at later changes there", async () => {
    const watched = await watchIt();
    for (let n = 0; n < 50; n++) {
      mkdirSync(path(`n${n}/a/b/c/d`), { recursive: true });
      writeFileSync(path(`n${n}/a/b/c/d/x.md`), "x");
    }
    for (let n = 0; n < 50; n++) await watched.sees(`n${n}/a/b/c/d/x.md`);
    // The hint for the innermost folder arrives when it is watched: from then on its files have their own hints.
    for (let n = 0; n < 50; n++) {
      await vi.waitUntil(() => watched.hints.has(`n${n}/a/b/c/d`), PATIENT);
    }
    watched.forget();
    for (let n = 0; n < 50; n++) writeFileSync(path(`n${n}/a/b/c/d/y.md`), "y");
    for (let n = 0; n < 50; n++) await watched.sees(`n${n}/a/b/c/d/y.md`);
    expect(watched.errors).toEqual([]);
  });

  it("hints at an atomic save", async () => {
    addFiles(root, { "a.md": "one" });
    const watched = await watchIt();
    for (let n = 0; n < 20; n++) {
      watched.forget();
      writeFileSync(path("a.md.tmp"), `save ${n}`);
      renameSync(path("a.md.tmp"), path("a.md"));
      await watched.sees("a.md");
      expect([...watched.hints]).not.toContain("a.md.tmp");
    }
  });

  it("hints at files in folders that were removed and created again", async () => {
    const folders = Array.from({ length: 12 }, (_, n) => `f${n}/b`);
    for (const folder of folders) addFiles(root, { [`${folder}/x.md`]: "x" });
    const watched = await watchIt();
    for (const folder of folders) {
      for (let n = 0; n < 10; n++) {
        rmSync(path(folder.slice(0, -2)), { recursive: true });
        mkdirSync(path(folder), { recursive: true });
      }
    }
    for (const folder of folders) {
      await vi.waitFor(() => {
        writeFileSync(path(`${folder}/y.md`), "y");
        expect([...watched.hints]).toContain(`${folder}/y.md`);
      }, PATIENT);
    }
  });

  it("hints at the whole source when the root disappears and returns", async () => {
    const away = `${root}-away`;
    addFiles(root, { "a.md": "a" });
    const watched = await watchIt();
    renameSync(root, away);
    await watched.sees("a.md");
    watched.forget();
    mkdirSync(root);
    writeFileSync(path("b.md"), "b");
    await watched.sees("b.md");
    watched.forget();
    await vi.waitFor(() => {
      writeFileSync(path("c.md"), "c");
      expect([...watched.hints].some((hint) => hint === "*" || hint === "c.md")).toBe(true);
    }, PATIENT);
    removeTree(away);
  });
});

describe("what the rules leave out", () => {
  it("neither watches excluded folders nor hints at them", async () => {
    addFiles(root, { "out/deep/x.md": "x", ".git/y": "y", "in/z.md": "z", ".kbsyncignore": "out/\n*.log\n" });
    const watched = await watchIt();
    appendFileSync(path("out/deep/x.md"), "x");
    appendFileSync(path(".git/y"), "x");
    writeFileSync(path("in/.z.md.swp"), "x");
    writeFileSync(path("in/z.log"), "x");
    appendFileSync(path("in/z.md"), "x");
    await watched.sees("in/z.md");
    expect([...watched.hints]).toEqual(["in/z.md"]);
  });

  it("watches an excluded folder once the ignore file includes it", async () => {
    addFiles(root, { "out/x.md": "x", ".kbsyncignore": "out/\n" });
    const watched = await watchIt();
    writeFileSync(path(".kbsyncignore"), "");
    await vi.waitUntil(() => watched.hints.has("*"), PATIENT);
    await vi.waitFor(() => {
      appendFileSync(path("out/x.md"), "x");
      expect([...watched.hints]).toContain("out/x.md");
    }, PATIENT);
  });

  it("does not watch through symbolic links", async () => {
    addFiles(root, { "a.md": "a" });
    const elsewhere = makeTree({ "x.md": "x" });
    symlinkSync(elsewhere, path("link"));
    const watched = await watchIt();
    writeFileSync(join(elsewhere, "y.md"), "y");
    appendFileSync(path("a.md"), "a");
    await watched.sees("a.md");
    expect([...watched.hints]).toEqual(["a.md"]);
    removeTree(elsewhere);
  });
});

describe("a watch", () => {
  it("a watch waits for a missing root", async () => {
    const later = path("later");
    const watched = await watchIt({}, later);
    mkdirSync(later);
    await watched.sees("a.md");
    watched.forget();
    await vi.waitFor(() => {
      writeFileSync(join(later, "a.md"), "a");
      expect([...watched.hints].some((hint) => hint === "*" || hint === "a.md")).toBe(true);
    }, PATIENT);
  });

  it("follows a root that is a symbolic link", async () => {
    addFiles(root, { "real/a.md": "a" });
    symlinkSync("real", path("link"));
    const watched = await watchIt({}, path("link"));
    appendFileSync(path("real/a.md"), "a");
    await watched.sees("a.md");
    expect([...watched.hints]).toEqual(["a.md"]);
  });

  it("reports the whole source after a renewal", async () => {
    addFiles(root, { "a/b.md": "b" });
    const watched = await watchIt();
    watched.watch.renew();
    await vi.waitUntil(() => watched.hints.has("*"), PATIENT);
    watched.forget();
    appendFileSync(path("a/b.md"), "b");
    await watched.sees("a/b.md");
    expect(watched.watch.degraded()).toBeUndefined();
  });

  it("a watch is silent after it was closed, while other watches continue", async () => {
    const other = makeTree({ "a.md": "a" });
    addFiles(root, { "a.md": "a" });
    const first = await watchIt();
    const second = await watchIt({}, other);
    await Promise.all([first.watch.close(), first.watch.close()]);
    await first.watch.close();
    appendFileSync(path("a.md"), "a");
    appendFileSync(join(other, "a.md"), "a");
    await second.sees("a.md");
    expect([...first.hints]).toEqual([]);
    removeTree(other);
  });

  it("leaves neither thread nor handle after the last watch was closed", async () => {
    const threads = (): number =>
      process.getActiveResourcesInfo().filter((kind) => kind === "MessagePort").length;
    const before = threads();
    const watched = await watchIt();
    expect(threads()).toBeGreaterThan(before);
    await watched.watch.close();
    await vi.waitUntil(() => threads() === before, PATIENT);
  });

  it("restarts a dead thread, reports it, and hints at everything again", async () => {
    const threads: Worker[] = [];
    const note = (thread: Worker): number => threads.push(thread);
    process.on("worker", note);
    const watched = await watchIt();
    await threads[0]?.terminate();
    await vi.waitUntil(() => watched.errors.length > 0, PATIENT);
    expect(watched.errors[0]).toMatchObject({ code: "watch_failed", subject: root, retryable: true });
    expect(watched.watch.degraded()).toContain("started again");
    await vi.waitUntil(() => watched.hints.has("*"), PATIENT);
    expect(watched.watch.degraded()).toBeUndefined();
    watched.forget();
    writeFileSync(path("a.md"), "a");
    await watched.sees("a.md");
    process.off("worker", note);
    expect(threads).toHaveLength(2);
  });

  it("distinguishes a local file system from a remote one", () => {
    expect(remoteFileSystem("/proc")).toBeUndefined();
    expect(remoteFileSystem(path("missing"))).toBeUndefined();
  });
});

/** Runs a process that watches the root; `command` may wrap it. Resolves with the lines it writes. */
function startFixture(
  roots: readonly string[],
  command: readonly string[] = [],
): { child: ChildProcess; lines: string[] } {
  const [program = "", ...args] = [
    ...command,
    process.execPath,
    join(import.meta.dirname, "fixture.ts"),
    ...roots,
  ];
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
  return { child, lines };
}

describe("what happens to a whole process", () => {
  const waitFor = async (lines: string[], line: string): Promise<void> => {
    await vi.waitUntil(() => lines.includes(line), { timeout: 30_000, interval: 5 });
  };

  it("reports every source and watches new folders after a flood during a stop of the process", async () => {
    addFiles(root, { "one/a.md": "", "one/b.md": "", "two/": "" });
    const { child, lines } = startFixture([path("one"), path("two")]);
    try {
      await waitFor(lines, "one ready");
      await waitFor(lines, "two ready");
      child.kill("SIGSTOP");
      // In turn: the kernel merges equal events that follow each other (inotify(7)).
      const files = [openSync(path("one/a.md"), "a"), openSync(path("one/b.md"), "a")];
      for (let n = 0; n < 10_000; n++) for (const file of files) writeSync(file, "x");
      for (const file of files) closeSync(file);
      mkdirSync(path("two/late"));
      child.kill("SIGCONT");
      await waitFor(lines, "one dirty *");
      await waitFor(lines, "two dirty *");
      writeFileSync(path("two/late/x.md"), "x");
      await waitFor(lines, "two dirty late/x.md");
      expect(lines.filter((line) => line.includes("error"))).toEqual([]);
    } finally {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
  }, 90_000);

  const limited = [
    "unshare",
    "-Ur",
    "sh",
    "-c",
    'echo 8 > /proc/sys/user/max_inotify_watches && exec "$@"',
    "sh",
  ];
  const [program = "", ...args] = limited;
  const cannotLimit = spawnSync(program, [...args, "true"]).status !== 0;
  it.skipIf(cannotLimit)(
    "too few inotify watches: an error with a hint, and what is watched goes on",
    async () => {
      for (let n = 0; n < 20; n++) addFiles(root, { [`f${n}/a.md`]: "a" });
      const { child, lines } = startFixture([root], limited);
      const name = basename(root);
      try {
        await waitFor(lines, `${name} ready`);
        expect(lines.filter((line) => line.includes("error"))).toEqual([
          `${name} error watch_limit: fs.inotify.max_user_watches`,
        ]);
        writeFileSync(path("b.md"), "b");
        await waitFor(lines, `${name} dirty b.md`);
      } finally {
        child.kill("SIGKILL");
        await once(child, "exit");
      }
    },
    60_000,
  );
});
