import { fs as memory, vol } from "memfs";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { RootIdentity, Scan } from "../../../src/sync/plan/model.ts";
import { openRules, type Rules } from "../../../src/sync/scan/rules/rules.ts";
import { rootIdentityOf } from "../../../src/sync/scan/disk/root-identity.ts";
import { scanPaths, scanSource } from "../../../src/sync/scan/scan.ts";
import { sourceAt } from "./tree.ts";

/** Called with each listed folder, to act during a scan. */
const listed = vi.hoisted(() => ({ call: (_path: string): void => undefined }));

vi.mock("node:fs", () => ({
  ...memory,
  readdirSync: (...facts: Parameters<typeof memory.readdirSync>) => {
    listed.call(String(facts[0]));
    return memory.readdirSync(...facts);
  },
}));

/** The mounts, by path, with their ids. */
function mounted(mounts: Readonly<Record<string, number>>): void {
  const lines = Object.entries(mounts).map(
    ([path, id]) => `${id} 1 8:1 / ${path} rw,relatime shared:1 - ext4 /dev/sda1 rw`,
  );
  vol.fromJSON({ "/proc/self/mountinfo": lines.join("\n") });
}

let files = new Set<string>();
function open(known: ReadonlyMap<string, RootIdentity> = new Map(), exclude: string[] = []): Rules {
  return openRules(sourceAt("/r", { exclude }), {
    ignoreFiles: { settleMs: 0, now: () => 0, inForce: new Map() },
    mounts: {
      known,
      hasFiles: (path) => [...files].some((file) => file === path || file.startsWith(`${path}/`)),
    },
  });
}
const identityOf = (path: string): RootIdentity => rootIdentityOf(memory.statSync(path));
const seen = ({ entries }: Scan): string[] => entries.map(({ path }) => path).sort();
const disk = (): ReadonlyMap<string, RootIdentity> => new Map([["disk", identityOf("/r/disk")]]);

beforeEach(() => {
  listed.call = () => undefined;
  vol.reset();
  vol.fromJSON({ "/r/a.md": "a", "/r/disk/b.md": "b", "/r/disk/sub/c.md": "c", "/r/disks/d.md": "d" });
  files = new Set(["a.md", "disk/b.md", "disk/sub/c.md", "disks/d.md"]);
});

describe("a mount below the source", () => {
  it("treats a mount in the ledger like any other folder", async () => {
    mounted({ "/": 1, "/r/disk": 2, "/rest": 3 });
    const rules = open(disk());
    expect(seen(await scanSource("/r", rules))).toHaveLength(4);
    expect(rules.mounts?.takeNoted()).toEqual([]);
  });

  it("names once a mount that came or went since the last refresh or during a scan", async () => {
    mounted({ "/": 1, "/r/disk": 2 });
    const rules = open(disk());
    const look = async (): Promise<readonly string[] | undefined> => {
      await scanPaths("/r", rules, ["a.md"]);
      return rules.mounts?.takeMoved();
    };
    expect(await look()).toEqual([]);
    mounted({ "/": 1, "/r/disk": 2, "/r/disks": 3 });
    expect([await look(), await look()]).toEqual([["disks"], []]);
    mounted({ "/": 1, "/r/disk": 4 });
    expect([await look(), await look()]).toEqual([["disk", "disks"], []]);
    listed.call = () => mounted({ "/": 1 });
    await scanSource("/r", rules);
    expect(rules.mounts?.takeMoved()).toEqual(["disk"]);
  });

  it("names at the first refresh a mount that differs from the ledger", async () => {
    mounted({ "/": 1, "/r/disks": 2 });
    const rules = open(disk());
    await scanSource("/r", rules);
    expect(rules.mounts?.takeMoved()).toEqual(["disk", "disks"]);
  });

  it("takes an unmounted path for unreadable as a whole, even in a scan of a part of it", async () => {
    mounted({ "/": 1 });
    const rules = open(disk());
    const unreadable = [{ path: "disk", code: "UNMOUNTED" }];
    expect(await scanSource("/r", rules)).toMatchObject({ unreadable });
    expect(seen(await scanSource("/r", rules))).toEqual(["a.md", "disks/d.md"]);
    for (const path of ["disk", "disk/b.md", "disk/sub/c.md"]) {
      const scan = await scanPaths("/r", rules, [path]);
      expect([scan.entries, scan.unreadable.slice(0, 1)]).toEqual([[], unreadable]);
    }
    expect((await scanPaths("/r", rules, ["a.md"])).unreadable).toEqual([]);
  });

  it("takes an unmounted path for unreadable even if its folder is gone", async () => {
    mounted({ "/": 1 });
    const rules = open(disk());
    memory.rmSync("/r/disk", { recursive: true });
    for (const scan of [await scanSource("/r", rules), await scanPaths("/r", rules, ["disk/b.md"])])
      expect(scan.unreadable).toEqual([{ path: "disk", code: "UNMOUNTED" }]);
  });

  it("removes a mount that is gone and has no file in the ledger", async () => {
    mounted({ "/": 1 });
    const rules = open(disk());
    files = new Set(["a.md", "disks/d.md"]);
    expect((await scanSource("/r", rules)).unreadable).toEqual([]);
    expect(rules.mounts?.takeNoted()).toEqual([{ path: "disk", root: undefined }]);
  });

  it("ignores a mount that the rules exclude", async () => {
    mounted({ "/": 1 });
    expect((await scanSource("/r", open(disk(), ["disk/**"]))).unreadable).toEqual([]);
  });

  it("records a new mount where the ledger has no file", async () => {
    mounted({ "/": 1, "/r/disk": 2 });
    files = new Set(["a.md"]);
    const rules = open();
    expect(seen(await scanSource("/r", rules))).toHaveLength(4);
    expect(rules.mounts?.takeNoted()).toEqual([{ path: "disk", root: identityOf("/r/disk") }]);
  });

  it("takes a new mount over known files for unreadable until it is judged", async () => {
    mounted({ "/": 1, "/r/disk": 2 });
    const rules = open();
    const unreadable = [{ path: "disk", code: "MOUNTED_OVER" }];
    expect((await scanSource("/r", rules)).unreadable).toEqual(unreadable);
    expect(seen(await scanSource("/r", rules, { judgesMounts: true }))).toHaveLength(4);
    expect(rules.mounts?.unjudged()).toEqual(["disk"]);
    rules.mounts?.judge("disk", true);
    expect((await scanSource("/r", rules)).unreadable).toEqual([]);
    expect(rules.mounts?.takeNoted()).toEqual([{ path: "disk", root: identityOf("/r/disk") }]);
  });

  it.each([
    ["is unmounted", { "/": 1 }],
    ["is mounted again", { "/": 1, "/r/disk": 3 }],
  ])("takes a mount for unreadable that %s during the scan", async (_, after) => {
    mounted({ "/": 1, "/r/disk": 2 });
    const rules = open(disk());
    listed.call = (path) => {
      if (path === "/r/disk/sub") mounted(after);
    };
    const scan = await scanSource("/r", rules);
    expect(seen(scan)).toEqual(["a.md", "disks/d.md"]);
    expect(scan.unreadable).toEqual([{ path: "disk", code: "MOUNTED_OVER" }]);
  });

  it("handles a mount of a single file", async () => {
    mounted({ "/": 1 });
    const scan = await scanSource("/r", open(new Map([["a.md", { dev: 9, ino: 9 }]])));
    expect(scan.unreadable).toEqual([{ path: "a.md", code: "UNMOUNTED" }]);
    expect(seen(scan)).not.toContain("a.md");
  });
});
