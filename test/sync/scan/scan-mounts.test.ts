import { fs as memory, vol } from "memfs";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { RootIdentity, Scan } from "../../../src/sync/plan/model.ts";
import { openRules, type Rules } from "../../../src/sync/rules/rules.ts";
import { rootIdentityOf } from "../../../src/sync/disk/root-identity.ts";
import { scanPaths, scanSource } from "../../../src/sync/scan/scan.ts";
import { sourceAt } from "./tree.ts";

/** Called with each folder that is listed, for what happens in the course of a scan. */
const listed = vi.hoisted(() => ({ call: (_path: string): void => undefined }));

vi.mock("node:fs", () => ({
  ...memory,
  readdirSync: (...facts: Parameters<typeof memory.readdirSync>) => {
    listed.call(String(facts[0]));
    return memory.readdirSync(...facts);
  },
}));

/** What is mounted, by its path, with its number. */
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
  it("that the ledger knows is a folder like any other", async () => {
    mounted({ "/": 1, "/r/disk": 2, "/rest": 3 });
    const rules = open(disk());
    expect(seen(await scanSource("/r", rules))).toHaveLength(4);
    expect(rules.mounts?.takeNoted()).toEqual([]);
  });

  it("that came or went since the look before, or in the course of a scan, is named once", async () => {
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

  it("that is mounted, or not, other than the ledger knows is named by the first look", async () => {
    mounted({ "/": 1, "/r/disks": 2 });
    const rules = open(disk());
    await scanSource("/r", rules);
    expect(rules.mounts?.takeMoved()).toEqual(["disk", "disks"]);
  });

  it("that is not mounted any more is unreadable as a whole, in a scan of a part of it too", async () => {
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

  it("is unreadable too when its folder went with it", async () => {
    mounted({ "/": 1 });
    const rules = open(disk());
    memory.rmSync("/r/disk", { recursive: true });
    for (const scan of [await scanSource("/r", rules), await scanPaths("/r", rules, ["disk/b.md"])])
      expect(scan.unreadable).toEqual([{ path: "disk", code: "UNMOUNTED" }]);
  });

  it("is forgotten when it is gone and the ledger has no file of it", async () => {
    mounted({ "/": 1 });
    const rules = open(disk());
    files = new Set(["a.md", "disks/d.md"]);
    expect((await scanSource("/r", rules)).unreadable).toEqual([]);
    expect(rules.mounts?.takeNoted()).toEqual([{ path: "disk", root: undefined }]);
  });

  it("is no matter where the rules leave it out", async () => {
    mounted({ "/": 1 });
    expect((await scanSource("/r", open(disk(), ["disk/**"]))).unreadable).toEqual([]);
  });

  it("that is new is noted where the ledger has no file", async () => {
    mounted({ "/": 1, "/r/disk": 2 });
    files = new Set(["a.md"]);
    const rules = open();
    expect(seen(await scanSource("/r", rules))).toHaveLength(4);
    expect(rules.mounts?.takeNoted()).toEqual([{ path: "disk", root: identityOf("/r/disk") }]);
  });

  it("that is new and lies over known files is unreadable until it was judged", async () => {
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
    ["is mounted anew", { "/": 1, "/r/disk": 3 }],
  ])("is unreadable when it %s in the course of the scan", async (_, after) => {
    mounted({ "/": 1, "/r/disk": 2 });
    const rules = open(disk());
    listed.call = (path) => {
      if (path === "/r/disk/sub") mounted(after);
    };
    const scan = await scanSource("/r", rules);
    expect(seen(scan)).toEqual(["a.md", "disks/d.md"]);
    expect(scan.unreadable).toEqual([{ path: "disk", code: "MOUNTED_OVER" }]);
  });

  it("may be a single file", async () => {
    mounted({ "/": 1 });
    const scan = await scanSource("/r", open(new Map([["a.md", { dev: 9, ino: 9 }]])));
    expect(scan.unreadable).toEqual([{ path: "a.md", code: "UNMOUNTED" }]);
    expect(seen(scan)).not.toContain("a.md");
  });
});
