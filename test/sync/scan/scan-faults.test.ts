import { fs as memory, vol } from "memfs";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { openRules } from "../../../src/sync/scan/rules/rules.ts";
import { scanPaths, scanSource } from "../../../src/sync/scan/scan.ts";
import { sourceAt } from "./tree.ts";

/** Calls that fail, which a disk does not do on demand: path, or call and path → error code. */
const faults = vi.hoisted(() => new Map<string, string>());

vi.mock("node:fs", () => {
  const check = (name: string, path: unknown): void => {
    const code = faults.get(String(path)) ?? faults.get(`${name} ${String(path)}`);
    if (code !== undefined)
      throw Object.assign(new Error(`${code}: ${String(path)}`), { code, syscall: "test" });
  };
  type Calls = Pick<typeof memory, "statSync" | "lstatSync" | "readdirSync" | "readFileSync">;
  const faulty = <K extends keyof Calls>(name: K): [K, (...args: Parameters<Calls[K]>) => unknown] => [
    name,
    (...args) => {
      check(name, args[0]);
      return Reflect.apply(memory[name], memory, args) as unknown;
    },
  ];
  const calls = [faulty("statSync"), faulty("lstatSync"), faulty("readdirSync"), faulty("readFileSync")];
  return { ...memory, ...Object.fromEntries(calls) };
});

const rules = openRules(sourceAt("/r"));

beforeEach(() => {
  faults.clear();
  vol.reset();
  vol.fromJSON({ "/r/a.md": "a", "/r/b/c.md": "c", "/r/b/d/e.md": "e", "/r/f.md": "f" });
});

describe("inaccessible paths in a scan", () => {
  it("reports a folder that cannot be listed and continues", async () => {
    faults.set("/r/b", "EACCES");
    const scan = await scanSource("/r", rules);
    expect(scan.entries.map(({ path }) => path).sort()).toEqual(["a.md", "f.md"]);
    expect(scan.unreadable).toMatchObject([{ path: "b", code: "EACCES" }]);
  });

  it("reports a file whose stat fails", async () => {
    faults.set("/r/b/c.md", "EIO");
    const scan = await scanSource("/r", rules);
    expect(scan.entries.map(({ path }) => path).sort()).toEqual(["a.md", "b/d/e.md", "f.md"]);
    expect(scan.unreadable).toEqual([{ path: "b/c.md", code: "EIO" }]);
  });

  it("takes files that disappear during the scan for absent", async () => {
    faults.set("/r/b/d", "ENOENT");
    faults.set("/r/a.md", "ENOENT");
    const scan = await scanSource("/r", rules);
    expect(scan.entries.map(({ path }) => path).sort()).toEqual(["b/c.md", "f.md"]);
    expect(scan.unreadable).toEqual([]);
  });

  it("reports an inaccessible root without an identity", async () => {
    faults.set("/r", "EACCES");
    expect(await scanSource("/r", rules)).toEqual({
      root: undefined,
      entries: [],
      unreadable: [{ path: "", code: "EACCES" }],
      refused: [],
      skipped: [],
      scope: undefined,
    });
  });

  it.each(["EACCES", "EIO"])("takes a root that cannot be listed (%s) for unreadable", async (code) => {
    faults.set("readdirSync /r", code);
    expect(await scanSource("/r", rules)).toMatchObject({
      root: undefined,
      entries: [],
      unreadable: [{ path: "", code }],
    });
  });

  it("takes a root that cannot be entered for unreadable, without blaming its ignore file", async () => {
    faults.set("readdirSync /r", "EACCES");
    faults.set("/r/.kbsyncignore", "EACCES");
    const scan = await scanSource("/r", openRules(sourceAt("/r")));
    expect(scan).toMatchObject({ root: undefined, unreadable: [{ path: "", code: "EACCES" }] });
  });

  it("takes a root with an unreadable ignore file for partly unreadable", async () => {
    vol.fromJSON({ "/r/.kbsyncignore": "a.md" });
    faults.set("/r/.kbsyncignore", "EACCES");
    const scan = await scanSource("/r", openRules(sourceAt("/r")));
    expect(scan).toMatchObject({ root: {}, unreadable: [{ path: "", code: "EACCES" }] });
  });

  it("reports the inaccessible folder above a single path", async () => {
    faults.set("/r/b", "EACCES");
    const scan = await scanPaths("/r", rules, ["b/d/e.md", "a.md"]);
    expect(scan.entries.map(({ path }) => path)).toEqual(["a.md"]);
    expect(scan.unreadable).toMatchObject([{ path: "b", code: "EACCES" }]);
  });

  it("reports a folder with an unreadable ignore file, and enters nothing below it", async () => {
    vol.fromJSON({ "/r/b/.kbsyncignore": "c.md" });
    faults.set("/r/b/.kbsyncignore", "EACCES");
    const scan = await scanSource("/r", rules);
    expect(scan.entries.map(({ path }) => path).sort()).toEqual(["a.md", "f.md"]);
    expect(scan.unreadable).toMatchObject([{ path: "b", code: "EACCES" }]);
  });
});
