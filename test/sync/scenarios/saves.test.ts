import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  closeSync,
  copyFileSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openFollowed, type Followed } from "./followed.ts";

let followed: Followed;
beforeAll(async () => {
  // A file for each test: only its first versions follow each other at once.
  const folders = [...PROGRAMS.keys(), "log", "vim", "many"];
  followed = await openFollowed(Object.fromEntries(folders.map((each) => [`${each}/a.txt`, "as it was"])));
});
afterAll(async () => {
  await followed.end();
});

/** Saves a text under a path as some program does. */
type Save = (path: string, text: string) => void;

const beside = (path: string, name: string): string => join(dirname(path), name);
const overwrite = (path: string, text: string): void => {
  const fd = openSync(path, "w");
  writeSync(fd, text);
  fsyncSync(fd);
  closeSync(fd);
};

const PROGRAMS: readonly (readonly [string, Save])[] = [
  ["VS Code or nano: truncate and write", overwrite],
  [
    "Vim with backupcopy=no: probe, backup by rename, a new file",
    (path, text) => {
      writeFileSync(beside(path, "4913"), "");
      unlinkSync(beside(path, "4913"));
      writeFileSync(beside(path, ".a.txt.swp"), "b0VIM");
      renameSync(path, `${path}~`);
      overwrite(path, text);
      unlinkSync(`${path}~`);
      unlinkSync(beside(path, ".a.txt.swp"));
    },
  ],
  [
    "Vim with backupcopy=yes: backup by copy, written in place",
    (path, text) => {
      copyFileSync(path, `${path}~`);
      overwrite(path, text);
      unlinkSync(`${path}~`);
    },
  ],
  [
    "Emacs: lock link, autosave, backup by rename",
    (path, text) => {
      symlinkSync("user@host.4711:1700000000", beside(path, ".#a.txt"));
      writeFileSync(beside(path, "#a.txt#"), text);
      renameSync(path, `${path}~`);
      overwrite(path, text);
      unlinkSync(beside(path, "#a.txt#"));
      unlinkSync(beside(path, ".#a.txt"));
    },
  ],
  [
    "LibreOffice: lock file, temporary file, rename",
    (path, text) => {
      writeFileSync(beside(path, ".~lock.a.txt#"), ",user,host,01.01.2026 00:00,file:///x;");
      writeFileSync(beside(path, "lu11937r3g9.tmp"), text);
      renameSync(beside(path, "lu11937r3g9.tmp"), path);
      unlinkSync(beside(path, ".~lock.a.txt#"));
    },
  ],
  [
    "gedit or GIO: hidden temporary file, backup copy, rename",
    (path, text) => {
      writeFileSync(beside(path, ".goutputstream-9XK2T3"), text);
      copyFileSync(path, `${path}~`);
      renameSync(beside(path, ".goutputstream-9XK2T3"), path);
    },
  ],
  [
    "macOS safe save: a temporary file, the old one renamed away, the new one put in its place",
    (path, text) => {
      writeFileSync(`${path}.sb-8f2d1c3e-aZbY12`, text);
      renameSync(path, `${path}.sb-8f2d1c3e-oLd345`);
      renameSync(`${path}.sb-8f2d1c3e-aZbY12`, path);
      unlinkSync(`${path}.sb-8f2d1c3e-oLd345`);
    },
  ],
  [
    "Microsoft Word: three renames",
    (path, text) => {
      writeFileSync(beside(path, "~$a.txt"), "lock");
      writeFileSync(beside(path, "~WRD0001.tmp"), text);
      renameSync(path, beside(path, "~WRL0002.tmp"));
      renameSync(beside(path, "~WRD0001.tmp"), path);
      unlinkSync(beside(path, "~WRL0002.tmp"));
      unlinkSync(beside(path, "~$a.txt"));
    },
  ],
  [
    "JetBrains: safe write",
    (path, text) => {
      writeFileSync(`${path}___jb_tmp___`, text);
      renameSync(path, `${path}___jb_old___`);
      renameSync(`${path}___jb_tmp___`, path);
      unlinkSync(`${path}___jb_old___`);
    },
  ],
  [
    "rsync: hidden temporary file, the sender's time, rename",
    (path, text) => {
      const temporary = beside(path, ".a.txt.Xq3k9Z");
      writeFileSync(temporary, text);
      utimesSync(temporary, new Date(2020, 1, 1), new Date(2020, 1, 1));
      renameSync(temporary, path);
    },
  ],
  [
    "rsync --inplace: written over, cut, the sender's time",
    (path, text) => {
      const fd = openSync(path, "r+");
      writeSync(fd, text);
      closeSync(fd);
      truncateSync(path, text.length);
      utimesSync(path, new Date(2020, 1, 1), new Date(2020, 1, 1));
    },
  ],
  [
    "sed -i: temporary file without an ending, rename",
    (path, text) => {
      writeFileSync(beside(path, "sedAbC12x"), text);
      renameSync(beside(path, "sedAbC12x"), path);
    },
  ],
  [
    "removed and rewritten",
    (path, text) => {
      rmSync(path);
      writeFileSync(path, text);
    },
  ],
];

it("a log that is appended to is one update of the same resource each time", async () => {
  const { at, agrees, sent, ids } = followed;
  const before = ids();
  for (let version = 1; version <= 3; version++) {
    appendFileSync(at("log/a.txt"), `line ${version}`);
    await agrees();
    expect(sent()).toEqual({ update: 1 });
  }
  expect(ids()).toEqual(before);
});

it.each(PROGRAMS.map(([name, save], folder) => [name, save, folder] as const))(
  "a save by %s is one update of the same resource",
  async (_name, save, folder) => {
    const { at, agrees, sent, ids } = followed;
    const before = ids();
    for (let version = 1; version <= 3; version++) {
      save(at(`${folder}/a.txt`), `version ${version}`);
      await agrees();
      expect(sent()).toEqual({ update: 1 });
    }
    expect(ids()).toEqual(before);
  },
);

const hasVim = spawnSync("vim", ["--version"]).status === 0;
describe.skipIf(!hasVim)("Vim itself (skipped where it is not installed)", () => {
  it.each(["backupcopy=no", "backupcopy=yes", "nowritebackup"])(
    "saves with %s: one update",
    async (option) => {
      const { at, agrees, sent, ids } = followed;
      const before = ids();
      const command = ["-u", "NONE", "-i", "NONE", "-es", "-c", `set ${option}`];
      const saved = spawnSync(
        "vim",
        [...command, "-c", `normal ggdGonew line, ${option}`, "-c", "wq", at("vim/a.txt")],
        {
          timeout: 10_000,
        },
      );
      expect(saved.status).toBe(0);
      expect(readFileSync(at("vim/a.txt"), "utf8")).toContain("new line");
      await agrees();
      expect(sent()).toEqual({ update: 1 });
      expect(ids()).toEqual(before);
    },
  );
});

it("200 saves by rename are updates: the resource is never gone, nor is there a second one", async () => {
  const { at, agrees, sent, ids } = followed;
  const before = ids();
  sent();
  for (let version = 0; version < 200; version++) {
    writeFileSync(at("many/.a.txt.tmp"), `version ${version}`);
    renameSync(at("many/.a.txt.tmp"), at("many/a.txt"));
    // A few turns in between: more checks of a file that never rests would make it wait for a minute, as they should.
    if (version % 50 === 0) {
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
  }
  await agrees();
  expect(ids()).toEqual(before);
  const { update = 0, ...others } = sent();
  expect(others).toEqual({});
  expect(update).toBeGreaterThan(0);
  expect(update).toBeLessThanOrEqual(200);
});
