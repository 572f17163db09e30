import { execFileSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readUnit, withOrigin, writeUnit } from "../../../src/cli/systemd/installed-unit.ts";
import { asInstalled, installUnit, unitCommands } from "../../../src/cli/systemd/service-install.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { planUnit } from "../../../src/cli/systemd/unit-plan.ts";
import type { UnitRequest } from "../../../src/cli/systemd/unit-checks.ts";
import { completeCommand, invocationOf } from "../../../src/cli/output/hint.ts";
import { directive } from "../../../src/system/unit-text.ts";
import { cliContext } from "../context.ts";

let folder: string;
let config: string;
beforeEach(() => {
  // In /tmp itself, of which the unit has its own: what lies there must be bound.
  folder = mkdtempSync("/tmp/kbsync-service-");
  // As a folder of configurations is; a temporary one is closed to others.
  chmodSync(folder, 0o755);
  config = join(folder, "kbsync.config.json");
  mkdirSync(join(folder, "docs"));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

const context = () =>
  cliContext({
    env: { XDG_CONFIG_HOME: join(folder, "conf"), XDG_STATE_HOME: join(folder, "state") },
    cwd: folder,
  });
const configure = (content: object): void => writeFileSync(config, JSON.stringify(content));
const plan = (request: UnitRequest = {}) => planUnit(context(), { config, ...request });

describe("the unit of a configuration", () => {
  it("a unit is not written while KBSYNC_DATABASE names a database that it would not have", async () => {
    configure({ sources: [{ path: "docs" }] });
    const env = { ...context().env, KBSYNC_DATABASE: "postgres://kbsync:secret@db.example/kbsync" };
    const refusal = (dir?: string) =>
      installUnit({ ...context(), env }, { config, print: true, ...(dir && { dir }) });
    await expect(refusal()).rejects.toMatchObject({
      code: "usage",
      hint: expect.stringContaining("service.databasePasswordFile"),
    });
    await expect(refusal("docs")).rejects.toMatchObject({ hint: expect.stringContaining("/etc/kbsync/") });
  });

  it("a unit runs both halves with the embedded service, and keeps its data where systemd says", () => {
    configure({ sources: [{ path: "docs" }] });
    const { unit, file, stateDir, text, warnings } = plan();
    expect({ unit, file, stateDir, warnings }).toEqual({
      unit: "kbsync.service",
      file: "/etc/systemd/system/kbsync.service",
      stateDir: "/var/lib/kbsync",
      warnings: [],
    });
    expect(directive(text, "ExecStart")[0]).toContain(` up --config ${config}`);
    expect(directive(text, "BindReadOnlyPaths")).toContain(`-${join(folder, "docs")}`);
    // The folder of the file, which an editor may replace.
    expect(directive(text, "BindReadOnlyPaths")).toContain(folder);
  });

  it("runs the daemon alone for a hosted service, with its key handed over", () => {
    const url = "https://kb.example";
    const service = { apiUrl: url, dbUrl: url, resourcesUrl: url, pauthkeyFile: "key" };
    configure({ service, sources: [{ path: "docs" }] });
    const { text } = plan();
    expect(directive(text, "ExecStart")[0]).toContain(` run --config ${config}`);
    expect(directive(text, "LoadCredential")).toEqual([`pauthkey:${join(folder, "key")}`]);
  });

  it("hands over the keys of models", () => {
    const model = { model: "m", apiKeyFile: "m.key" };
    configure({
      sources: [{ path: "docs" }],
      kb: {
        embedding: { baseUrl: "https://m.example/v1", ...model },
        reranker: { url: "https://r.example/rerank", ...model },
        languageModel: { baseUrl: "https://l.example/v1", ...model },
      },
    });
    const file = join(folder, "m.key");
    expect(directive(plan().text, "LoadCredential")).toEqual([
      `kb.embedding.apiKey:${file}`,
      `kb.reranker.apiKey:${file}`,
      `kb.languageModel.apiKey:${file}`,
    ]);
  });

  it.each<[string, UnitRequest]>([
    ["a configuration", {}],
    ["a folder", { dir: "docs" }],
    ["a person", { user: true }],
  ])("the unit of %s waits ever longer before another start where systemd can do that", (_name, request) => {
    configure({ sources: [{ path: "docs" }] });
    const steps = (version?: number): string[] =>
      directive(planUnit(context(), { config, ...request }, version).text, "RestartSteps");
    expect([steps(), steps(252), steps(254)]).toEqual([[], [], ["6"]]);
  });

  it("warns of folders that are closed or missing", () => {
    mkdirSync(join(folder, "closed"), { mode: 0o750 });
    configure({ sources: [{ path: "closed" }, { path: "missing" }] });
    expect(plan().warnings).toEqual([
      expect.stringContaining("closed is closed to others: --group NAME"),
      expect.stringContaining("missing does not exist"),
    ]);
    expect(plan({ group: ["docs"] }).warnings).toHaveLength(1);
    expect(directive(plan({ group: ["docs"] }).text, "SupplementaryGroups")).toEqual(["docs"]);
  });

  it("warns of a source that is a link, which the unit follows at its start alone", () => {
    const link = join(folder, "link");
    symlinkSync(join(folder, "docs"), link);
    configure({ sources: [{ path: "link" }] });
    expect(plan().warnings).toEqual([
      `${link} leads to ${join(folder, "docs")} by a link: name that folder itself under sources`,
    ]);
  });

  it.each<[string, object, UnitRequest, string]>([
    ["has no source", {}, {}, "there is no folder to sync"],
    [
      "names a home that is another one for the unit",
      { sources: [{ path: "~/docs" }] },
      {},
      "~ is another folder",
    ],
    [
      "names a state folder that the unit cannot write",
      { sources: [{ path: "docs" }], stateDir: "/srv/state" },
      {},
      "names the state folder /srv/state",
    ],
    [
      "names a folder of uploaded files that the unit cannot write",
      { sources: [{ path: "docs" }], service: { files: "/srv/files" } },
      {},
      "cannot write the folder of uploaded files /srv/files",
    ],
    ["is for one folder and one person", {}, { dir: "docs", user: true }, "is a system unit"],
  ])(
    "the unit of a configuration is refused where the configuration %s",
    (_name, content, request, words) => {
      configure(content);
      expect(() => plan(request)).toThrow(words);
    },
  );

  it("lets the owner of a folder of uploaded files write it", () => {
    configure({ sources: [{ path: "docs" }], service: { files: "/srv/files" } });
    expect(directive(plan({ runAs: "me" }).text, "BindPaths")).toContain("/srv/files");
  });

  it("the unit of a configuration is refused where the unit's own user cannot read the configuration, not where its owner runs it", () => {
    configure({ sources: [{ path: "docs" }] });
    chmodSync(config, 0o600);
    expect(() => plan()).toThrow(`cannot read ${config}`);
    expect(directive(plan({ runAs: "me" }).text, "User")).toEqual(["me"]);
  });

  it("the unit of a configuration is refused where the configuration's folder is closed to the unit's own user", () => {
    configure({ sources: [{ path: "docs" }] });
    chmodSync(folder, 0o750);
    expect(() => plan()).toThrow(
      expect.objectContaining({
        code: "config_unreadable",
        subject: folder,
        hint: expect.stringContaining(`chmod o+x ${folder}`) as string,
      }),
    );
    expect(plan({ group: ["docs"] }).warnings).toEqual([]);
    expect(plan({ runAs: "me" }).warnings).toEqual([]);
    chmodSync(folder, 0o711);
    expect(plan().warnings).toEqual([]);
  });

  it.each<[string, string]>([
    ["the temporary folder", "/tmp"],
    ["a home", homedir()],
  ])(
    "the unit of a configuration is refused where the configuration lies in %s, with whatever else is there",
    (_name, place) => {
      const file = join(place, `kbsync-${process.pid}.json`);
      writeFileSync(file, JSON.stringify({ sources: [{ path: join(folder, "docs") }] }));
      try {
        expect(() => plan({ config: file })).toThrow(
          expect.objectContaining({
            code: "usage",
            subject: file,
            message: expect.stringContaining(place) as string,
          }),
        );
        // A person's own unit hides nothing.
        expect(plan({ config: file, user: true }).unit).toBe("kbsync.service");
      } finally {
        rmSync(file);
      }
    },
  );

  it("the unit of a person lies among their own", () => {
    configure({ sources: [{ path: "docs" }] });
    const { file, stateDir, text } = plan({ user: true });
    expect(file).toBe(join(folder, "conf", "systemd", "user", "kbsync.service"));
    expect(stateDir).toBe(join(folder, "state", "kbsync"));
    expect(directive(text, "WantedBy")).toEqual(["default.target"]);
  });

  it("the unit of a person takes any free port, and that of the configuration where it names one", () => {
    configure({ sources: [{ path: "docs" }] });
    const [assignment = ""] = directive(plan({ user: true }).text, "Environment");
    const env = { KBSYNC_PORT: assignment.replace("KBSYNC_PORT=", "") };
    const port = (): unknown =>
      loadConfig({ file: config, cwd: folder, env: { ...context().env, ...env } }).service;
    expect(port()).toMatchObject({ port: 0 });
    configure({ service: { port: 7411 }, sources: [{ path: "docs" }] });
    expect(port()).toMatchObject({ port: 7411 });
    expect(plan().text).not.toContain("KBSYNC_PORT");
  });

  it("the unit of a folder has data of its own", () => {
    expect(plan({ dir: "docs" })).toMatchObject({
      file: "/etc/systemd/system/kbsync@.service",
      unit: expect.stringMatching(/^kbsync@.*-docs\.service$/) as string,
      stateDir: expect.stringMatching(/^\/var\/lib\/kbsync-.*-docs$/) as string,
    });
  });
});

describe("the commands that an install prints", () => {
  it.each(["hand-book", "my docs", "Übung", "it's here"])(
    "the commands that an install prints name the unit and the state folder of %s as a shell reads them",
    (name) => {
      mkdirSync(join(folder, name));
      const { unit, stateDir } = plan({ dir: name });
      const { status, journal, restart } = unitCommands({ unit, stateDir }, {});
      const words = (command: string): string[] =>
        execFileSync("sh", ["-c", `sudo() { printf '%s\\n' "$@"; }; ${command}`], { encoding: "utf8" })
          .trimEnd()
          .split("\n");
      expect(words(status)).toEqual(["kbsync", "status", "--state-dir", stateDir]);
      expect(words(journal)).toEqual(["journalctl", "-u", unit]);
      expect(words(restart)).toEqual(["systemctl", "restart", unit]);
    },
  );

  it("the printed commands search in the unit's own state folder, not in that of the user who reads the journal", () => {
    const state = String.raw`/var/lib/kbsync-srv-hand\x2dbook`;
    const typed = (env: NodeJS.ProcessEnv): string =>
      completeCommand('kbsync search "your question"', invocationOf({ env, cwd: "/" }, {}));
    expect(typed({ STATE_DIRECTORY: state })).toBe(
      `sudo kbsync search "your question" --state-dir '${state}'`,
    );
    expect(typed({})).toBe('kbsync search "your question"');
  });
});

describe("a unit file", () => {
  it("a unit file repeats the options of the last install, unless the next one names others", () => {
    configure({ sources: [{ path: "docs" }] });
    const file = join(folder, "kbsync.service");
    const first = plan({ runAs: "me", group: ["docs"] });
    writeFileSync(file, first.text);
    const installed = readUnit(file);
    expect(planUnit(context(), asInstalled({}, installed)).text).toBe(first.text);
    expect(asInstalled({ runAs: "you" }, installed)).toEqual({ config, runAs: "you", group: ["docs"] });
  });

  it("a unit file is written whole, with the folders above it, or the reason is reported", () => {
    const file = join(folder, "systemd", "user", "kbsync.service");
    writeUnit(file, "[Unit]\n");
    expect(readFileSync(file, "utf8")).toBe("[Unit]\n");
    expect(statSync(file).mode & 0o777).toBe(0o644);
    const blocked = join(file, "below.service");
    expect(() => writeUnit(blocked, "")).toThrow(
      expect.objectContaining({ code: "unit_unusable", subject: blocked }),
    );
  });

  it("a unit file of somebody else is not touched", () => {
    const file = join(folder, "kbsync.service");
    expect(readUnit(file)).toBeUndefined();
    for (const text of ["[Unit]\n", withOrigin("[Unit]\n", { data: "/x" }).replace('"data"', '"date"')]) {
      writeFileSync(file, text);
      expect(() => readUnit(file)).toThrow(expect.objectContaining({ code: "unit_foreign" }));
    }
  });
});
