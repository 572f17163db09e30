import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { directive, withDirective } from "../../src/system/unit-text.ts";
import { instanceUnit, isShared, systemUnit, type UnitFacts, userUnit } from "../../src/system/unit.ts";

const packaged = (name: string): string =>
  readFileSync(new URL(`../../systemd/${name}`, import.meta.url), "utf8");
const SYSTEM = packaged("kbsync.service");
const INSTANCE = packaged("kbsync@.service");
const USER = packaged("user/kbsync.service");

const FACTS: UnitFacts = {
  program: {
    // Any program that every machine has: the tests' own may lie among data.
    node: "/usr/bin/env",
    script: "/usr/lib/node_modules/kbsync/dist/main.js",
    packageFolder: "/usr/lib/node_modules/kbsync",
  },
  args: ["up", "--config", "/etc/kbsync/kbsync.config.json"],
  unit: "kbsync.service",
  groups: [],
  sources: ["/srv/handbook", "/srv/my docs"],
  needs: ["/etc/kbsync"],
  credentials: [],
  topFolders: ["/bin", "/etc", "/home", "/mnt", "/opt", "/root", "/srv", "/usr", "/var"],
};

/** Of paths with whatever systemd may give a meaning. */
const CREDENTIALS = ["/etc/a key", '/etc/"a": key', String.raw`/etc/a\key`, "/etc/100%"].map((path, at) => ({
  id: `key${at}`,
  path,
}));

const all = (text: string, ...keys: readonly string[]): string[] =>
  keys.flatMap((key) => directive(text, key).map((value) => `${key}=${value}`));
const SEEN = ["ProtectHome", "TemporaryFileSystem", "BindReadOnlyPaths", "BindPaths"] as const;

describe("every unit", () => {
  it.each([
    ["of the system", SYSTEM, systemUnit(SYSTEM, FACTS)],
    ["of a folder", INSTANCE, instanceUnit(INSTANCE, FACTS)],
    ["of a person", USER, userUnit(USER, FACTS)],
  ])(
    "%s starts no program that is gone, and outlives a child that the kernel ended",
    (_name, packed, written) => {
      for (const text of [packed, written]) {
        const [start = ""] = directive(text, "ExecStart");
        expect(directive(text, "AssertPathExists")).toEqual([start.split(" ")[1]]);
        expect(directive(text, "RestartPreventExitStatus")).toEqual(["2 203"]);
        expect(all(text, "SyslogIdentifier", "OOMPolicy", "KillMode")).toEqual([
          "SyslogIdentifier=kbsync",
          "OOMPolicy=continue",
          "KillMode=mixed",
        ]);
      }
    },
  );
});

describe("a unit for a machine", () => {
  it.each<[string, Partial<UnitFacts>, readonly string[]]>([
    [
      "shows its sources and hides all other data",
      {},
      [
        "ProtectHome=tmpfs",
        "TemporaryFileSystem=/mnt:ro /opt:ro /srv:ro /var:ro",
        "BindReadOnlyPaths=-/srv/handbook",
        'BindReadOnlyPaths="-/srv/my docs"',
      ],
    ],
    [
      "shows a program, a configuration and a model that lie among data",
      {
        sources: ["/home/me/docs"],
        program: {
          node: "/home/me/.nvm/bin/node",
          script: "/opt/kbsync/dist/main.js",
          packageFolder: "/opt/kbsync",
        },
        needs: ["/tmp/conf", "/opt/kbsync/model", "/home/me/docs/.kbsync"],
      },
      [
        "ProtectHome=tmpfs",
        "TemporaryFileSystem=/mnt:ro /opt:ro /srv:ro /var:ro",
        "BindReadOnlyPaths=-/home/me/docs",
        "BindReadOnlyPaths=/opt/kbsync",
        "BindReadOnlyPaths=/home/me/.nvm/bin/node",
        "BindReadOnlyPaths=/tmp/conf",
      ],
    ],
    [
      "leaves a place as it is that is a source as a whole",
      { sources: ["/srv", "/home"] },
      [
        "ProtectHome=read-only",
        "TemporaryFileSystem=/mnt:ro /opt:ro /var:ro",
        "BindReadOnlyPaths=-/srv",
        "BindReadOnlyPaths=-/home",
      ],
    ],
    [
      "shows a user of this machine its folders",
      { user: "me", sources: ["/srv/a"] },
      [
        "ProtectHome=tmpfs",
        "TemporaryFileSystem=/mnt:ro /opt:ro /srv:ro /var:ro",
        "BindReadOnlyPaths=-/srv/a",
        "BindPaths=%S/kbsync %C/kbsync",
      ],
    ],
    [
      "lets a user write a state folder that is configured",
      { user: "me", sources: ["/srv/a"], stateDir: "/srv/state" },
      [
        "ProtectHome=tmpfs",
        "TemporaryFileSystem=/mnt:ro /opt:ro /srv:ro /var:ro",
        "BindReadOnlyPaths=-/srv/a",
        "BindPaths=/srv/state",
        "BindPaths=%C/kbsync",
      ],
    ],
    [
      "lets a user write a folder of uploaded files",
      { user: "me", sources: ["/srv/a"], filesDir: "/srv/files" },
      [
        "ProtectHome=tmpfs",
        "TemporaryFileSystem=/mnt:ro /opt:ro /srv:ro /var:ro",
        "BindReadOnlyPaths=-/srv/a",
        "BindPaths=%S/kbsync %C/kbsync",
        "BindPaths=/srv/files",
      ],
    ],
  ])("a system unit %s", (_name, change, expected) => {
    expect(all(systemUnit(SYSTEM, { ...FACTS, ...change }), ...SEEN)).toEqual(expected);
  });

  it("runs the program as the user, with the groups and keys that it is given", () => {
    const text = systemUnit(SYSTEM, {
      ...FACTS,
      user: "me",
      groups: ["docs", "staff"],
      credentials: [{ id: "pauthkey", path: '/etc/kbsync/key of ours: "100%"' }],
    });
    expect(all(text, "ExecStart", "User", "DynamicUser", "SupplementaryGroups", "LoadCredential")).toEqual([
      `ExecStart=${FACTS.program.node} /usr/lib/node_modules/kbsync/dist/main.js up --config /etc/kbsync/kbsync.config.json`,
      "User=me",
      "SupplementaryGroups=docs",
      "SupplementaryGroups=staff",
      'LoadCredential=pauthkey:/etc/kbsync/key of ours: "100%%"',
    ]);
    expect(all(text, "Environment")).toEqual(["Environment=KBSYNC_UNIT=kbsync.service"]);
  });

  it("starts after the mounts at and above its sources, and without one that fails", () => {
    const text = systemUnit(SYSTEM, {
      ...FACTS,
      sources: ["/srv/my docs", "/srv/a%b", `/${"x".repeat(250)}`],
    });
    const units = String.raw`srv.mount srv-my\x20docs.mount srv-a\x25b.mount`;
    expect(all(text, "Wants", "RequiresMountsFor")).toEqual([`Wants=${units}`]);
    expect(directive(text, "After")).toEqual([...directive(SYSTEM, "After"), units]);
    const instance = instanceUnit(INSTANCE, FACTS);
    expect(all(instance, "Wants", "RequiresMountsFor")).toEqual(["Wants=%i.mount"]);
    expect(directive(instance, "After").join(" ")).toContain(" %i.mount");
  });

  it("a unit for a machine for one folder each names it by the instance", () => {
    const text = instanceUnit(INSTANCE, FACTS);
    expect(all(text, "ExecStart", ...SEEN)).toEqual([
      `ExecStart=${FACTS.program.node} /usr/lib/node_modules/kbsync/dist/main.js up %f $KBSYNC_ARGS`,
      "ProtectHome=tmpfs",
      "TemporaryFileSystem=/mnt:ro /opt:ro /srv:ro /var:ro",
      "BindReadOnlyPaths=%f",
    ]);
  });
});

describe("a folder that a unit would have to show for one file in it", () => {
  const machine = {
    topFolders: [...FACTS.topFolders, "/data"],
    homes: ["/root", "/home/me", "/data/people/you", "/", "/nonexistent"],
  };
  it.each<[string, readonly string[], boolean]>([
    ["/etc/kbsync", [], false],
    ["/home/me/.config/kbsync", [], false],
    ["/srv/kb", [], false],
    ["/", [], false],
    ["/etc", [], false],
    ["/home", [], true],
    ["/home/me", [], true],
    ["/home/nobody-there", [], true],
    ["/root", [], true],
    ["/run/user/1000", [], true],
    ["/data/people/you", [], true],
    ["/srv", [], true],
    ["/var", [], true],
    ["/tmp", [], true],
    ["/var/tmp", [], true],
    ["/home/me", ["/home/me"], false],
    ["/srv", ["/srv"], false],
  ])("%s, with the sources %j: is shared with other data is %s", (path, sources, expected) => {
    expect(isShared(path, { ...machine, sources })).toBe(expected);
  });
});

it("both system units are hardened alike", () => {
  const hardening = (text: string): string[] =>
    text
      .slice(text.indexOf("UMask="), text.indexOf("[Install]"))
      .split("\n")
      .filter((line) => !/^#|^ProtectHome|^TemporaryFileSystem|^BindReadOnlyPaths|^$/.test(line));
  expect(hardening(INSTANCE)).toEqual(hardening(SYSTEM));
  expect(hardening(SYSTEM).length).toBeGreaterThan(25);
});

const hasAnalyze = spawnSync("systemd-analyze", ["--version"]).status === 0;
/** Of ten: what is left is the network, Unix sockets, writable code for V8, and limits that children set themselves. */
const EXPOSURE_MAX = 1.3;

describe.skipIf(!hasAnalyze)(
  `systemd-analyze${hasAnalyze ? "" : ": skipped, it is not on this machine"}`,
  () => {
    let folder: string;
    beforeAll(() => {
      folder = mkdtempSync(join(tmpdir(), "kbsync-units-"));
      mkdirSync(join(folder, "run"), { mode: 0o700 });
    });
    afterAll(() => {
      rmSync(folder, { recursive: true });
    });
    /** verify looks for the program that a unit starts: the packaged ones name places that only an installation has. */
    const runnable = (text: string): string => {
      const [command = ""] = directive(text, "ExecStart");
      return withDirective(text, "Service", "ExecStart", [
        command.replace("/usr/bin/node", process.execPath),
      ]);
    };
    const written = (name: string, text: string): string => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
    const systemUnits = (): string[] => [
      written("kbsync.service", runnable(SYSTEM)),
      written("kbsync@.service", runnable(INSTANCE)),
      written(
        "kbsync-written.service",
        systemUnit(SYSTEM, { ...FACTS, groups: ["docs"], credentials: CREDENTIALS }),
      ),
      written("kbsync-written@.service", instanceUnit(INSTANCE, FACTS)),
    ];
    const analyze = (...args: readonly string[]) =>
      spawnSync("systemd-analyze", [...args], {
        encoding: "utf8",
        env: { ...process.env, XDG_RUNTIME_DIR: join(folder, "run") },
      });

    it.each([
      ["the system's", () => systemUnits()],
      ["a person's", () => ["--user", written("kbsync-user.service", userUnit(USER, FACTS))]],
    ])("finds nothing to say of %s units", (_name, units) => {
      const { status, stdout, stderr } = analyze("verify", "--recursive-errors=yes", "--man=no", ...units());
      expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: "", stderr: "" });
    });

    it(`finds them exposed to ${EXPOSURE_MAX} at most`, () => {
      for (const file of systemUnits()) {
        const { stdout } = analyze("security", "--offline=true", "--no-pager", file);
        const reported = /Overall exposure level for \S+ (\d+\.\d+)/.exec(stdout)?.[1];
        expect(Number(reported), `it said: ${stdout}`).toBeLessThanOrEqual(EXPOSURE_MAX);
      }
    });
  },
);
