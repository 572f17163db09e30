import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { editConfig } from "../../../src/cli/state/config-file.ts";
import { openFolderChanges } from "../../../src/cli/state/folder-changes.ts";
import { type Config, loadConfig } from "../../../src/config/load.ts";
import type { FolderChanges } from "../../../src/sync/daemon/control/operations.ts";

const NEVER = new AbortController().signal;
let base: string;
let file: string;
let config: Config;
let deleted: string[];

const at = (name: string): string => join(base, name);
const written = (): string => readFileSync(file, "utf8");
const context = () => ({ cwd: base, env: {} });

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "folder-changes-"));
  file = at("kbsync.config.json");
  for (const name of ["one", "two", "two/inner", "state"]) mkdirSync(at(name));
  writeFileSync(at("two/a.md"), "# A");
  writeFileSync(file, `{\n  // mine\n  "stateDir": "state",\n  "sources": [{ "path": "one" }]\n}\n`);
  deleted = [];
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

function open({ areNamed = false, hasFile = true, env = {} } = {}): FolderChanges {
  const request = { ...context(), env, ...(hasFile ? { file } : { cwd: at("one"), stateDir: at("state") }) };
  config = loadConfig({ ...request, ...(areNamed && { folders: [{ path: "one" }] }) });
  return openFolderChanges({
    request,
    areNamed,
    config: () => config,
    reload: async () => {
      config = loadConfig(request);
      return { applied: [`source ${at("two")} added`, "sync.settleMs"], pending: [] };
    },
    onDelete: (folder) => deleted.push(folder),
  });
}

describe("a preview", () => {
  it("counts a folder as it would be synced, and changes nothing", async () => {
    const before = written();
    expect(
      await open().add({ path: `${at("two")}//./`, tier: "moderate", ownerId: "team", dryRun: true }, NEVER),
    ).toMatchObject({
      path: at("two"),
      file,
      applied: [],
      obstacle: null,
      preview: { realPath: null, tier: "moderate", ownerId: "team", files: 1 },
    });
    expect(written()).toBe(before);
  });

  it("says where a symbolic link leads", async () => {
    symlinkSync(at("two"), at("link"));
    expect(await open().add({ path: at("link"), dryRun: true }, NEVER)).toMatchObject({
      path: at("link"),
      preview: { realPath: at("two") },
    });
  });

  it.each([
    ["does not exist", "missing", "source_unusable"],
    ["is a file", "two/a.md", "source_unusable"],
    ["is synced already", "one", "source_known"],
    ["is around the state folder", "", "source_overlap"],
    ["is the state folder", "state", "source_overlap"],
    ["is inside the state folder", "state/service", "source_overlap"],
    ["leads to a source by a link", "link", "source_overlap"],
  ])("refuses a folder that %s", async (_what, path, code) => {
    mkdirSync(at("state/service"));
    symlinkSync(at("one"), at("link"));
    await expect(open().add({ path: at(path), dryRun: true }, NEVER)).rejects.toMatchObject({ code });
  });

  it.each(["/", "/proc", "/proc/self", "/sys", "/dev", "/home/.."])("refuses %s", async (path) => {
    await expect(open().add({ path, dryRun: true }, NEVER)).rejects.toMatchObject({
      code: "source_unusable",
    });
  });

  it("names the unit that hides a folder", async () => {
    await expect(
      open({ env: { KBSYNC_UNIT: "kbsync.service" } }).add({ path: "/hidden/docs", dryRun: true }, NEVER),
    ).rejects.toMatchObject({ hint: expect.stringContaining("kbsync service install") as string });
  });
});

describe("adding", () => {
  it("writes the folder into the configuration, comments and all, and has it read again", async () => {
    expect(
      await open().add({ path: at("two"), tier: "moderate", exclude: ["*.log"], dryRun: false }, NEVER),
    ).toEqual({
      path: at("two"),
      file,
      applied: ["sync.settleMs"],
      obstacle: null,
      preview: null,
    });
    expect(written()).toContain("// mine");
    expect(config.sources.at(-1)).toMatchObject({
      absolutePath: at("two"),
      collection: "moderate",
      exclude: ["*.log"],
    });
  });

  it("takes what was edited by hand since it was read", async () => {
    const changes = open();
    writeFileSync(file, written().replace("// mine", "// edited"));
    await changes.add({ path: at("two"), dryRun: false }, NEVER);
    expect(written()).toContain("// edited");
    // Somebody else has added it meanwhile.
    config = loadConfig({ ...context(), stateDir: at("state"), folders: [{ path: "one" }], file });
    const before = written();
    await changes.add({ path: at("two"), dryRun: false }, NEVER);
    expect(written()).toBe(before);
  });

  it.each([
    ["is not JSON any more", "{", "config_invalid"],
    ["has the state folder in it now", `{ "stateDir": "two/inner/state", "sources": [] }`, "source_overlap"],
  ])("changes nothing when the file %s", async (_what, text, code) => {
    const changes = open();
    writeFileSync(file, text);
    await expect(changes.add({ path: at("two/inner"), dryRun: false }, NEVER)).rejects.toMatchObject({
      code,
    });
    expect(written()).toBe(text);
    expect(existsSync(at(`.${process.pid}.kbsync.config.json.new`))).toBe(false);
  });

  it.each([
    ["were named when it was started", { areNamed: true }],
    ["stand in no file", { hasFile: false }],
  ])(
    "an added folder is refused where the folders %s, which a preview says before",
    async (_what, options) => {
      const changes = open(options);
      const before = written();
      const { obstacle } = await changes.add({ path: at("two"), dryRun: true }, NEVER);
      expect(obstacle?.hint).toContain("kbsync init");
      await expect(changes.add({ path: at("two"), dryRun: false }, NEVER)).rejects.toMatchObject({
        code: "folders_fixed",
      });
      expect(written()).toBe(before);
    },
  );

  it("refuses globs that the configuration does not take", async () => {
    await expect(
      open().add({ path: at("two"), exclude: ["!drafts"], dryRun: false }, NEVER),
    ).rejects.toMatchObject({
      code: "config_invalid",
    });
  });
});

describe("removing", () => {
  it("says before what it would do", async () => {
    const before = written();
    expect(await open().remove({ folder: at("one"), documents: "delete", dryRun: true })).toMatchObject({
      file,
      obstacle: null,
    });
    expect(written()).toBe(before);
    expect(deleted).toEqual([]);
  });

  it.each([
    ["keep", []],
    ["delete", ["one"]],
  ] as const)(
    "takes the folder out of the configuration, also the last one: %s",
    async (documents, expected) => {
      await open().remove({ folder: at("one"), documents, dryRun: false });
      expect(config.sources).toEqual([]);
      expect(written()).toContain("// mine");
      expect(deleted).toEqual(expected.map(at));
    },
  );

  it("refuses a folder that is not synced", async () => {
    await expect(
      open().remove({ folder: at("two"), documents: "delete", dryRun: false }),
    ).rejects.toMatchObject({ code: "source_unknown" });
  });
});

describe("an edit of the configuration", () => {
  it("an edit of the configuration is repeated on what another program wrote meanwhile, and given up if that does not end", () => {
    let changes = 0;
    const other = (): void => writeFileSync(file, written().replace(/mine\d*/, `mine${(changes += 1)}`));
    editConfig(file, context(), (text) => {
      if (changes === 0) other();
      return text.replace('"one"', '"two"');
    });
    expect(written()).toContain("// mine1");
    expect(written()).toContain('"two"');
    expect(() =>
      editConfig(file, context(), (text) => {
        other();
        return text.replace('"two"', '"one"');
      }),
    ).toThrow(expect.objectContaining({ code: "config_changed" }));
    expect(written()).toContain('"two"');
  });
});
