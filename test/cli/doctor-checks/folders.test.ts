import { vol } from "memfs";
import { afterEach, expect, it, vi } from "vitest";
import { seeFolders } from "../../../src/cli/doctor-checks/folders.ts";
import { ConfigFile } from "../../../src/config/schema.ts";

vi.mock("node:fs", async () => (await import("memfs")).fs);
vi.mock("node:fs/promises", async () => (await import("memfs")).fs.promises);

afterEach(() => vol.reset());

const signal = new AbortController().signal;
function source(more: object = {}) {
  const [config] = ConfigFile.parse({ sources: [{ path: "/docs", ...more }] }).sources;
  if (config === undefined) throw new Error("no source");
  return { ...config, absolutePath: "/docs", ownerId: "o" };
}

it("names what cannot be read, and goes on with the rest", async () => {
  vol.fromJSON({
    "/docs/a.md": "a",
    "/docs/secret.md": "s",
    "/docs/closed/b.md": "b",
    "/docs/open/c.md": "c",
    "/docs/open/left-out.md": "d",
  });
  vol.chmodSync("/docs/secret.md", 0o000);
  vol.chmodSync("/docs/closed", 0o000);
  const seen = await seeFolders(source({ exclude: ["open/left-out.md"] }), signal);
  expect(seen).toMatchObject({ problem: undefined, files: 3, unreadable: 2, cut: false });
  expect(seen.unreadablePaths.toSorted()).toEqual(["closed", "secret.md"]);
});

it("says why the source's own folder cannot be read", async () => {
  expect((await seeFolders(source(), signal)).problem).toEqual({ code: "ENOENT" });
  vol.fromJSON({ "/docs": "a file" });
  expect((await seeFolders(source(), signal)).problem).toEqual({ code: "ENOTDIR" });
});

it("the check of folders can be aborted", async () => {
  vol.fromJSON(Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`/docs/d${at}/a.md`, "a"])));
  await expect(seeFolders(source(), AbortSignal.abort(new Error("stop")))).rejects.toThrow("stop");
});

it("reports ignore files that hold back a folder, and patterns that may not mean what they say", async () => {
  vol.fromJSON({ "/docs/a.md": "a", "/docs/.kbsyncignore": "secret\\*\n", "/docs/b/c.md": "c" });
  vol.mkdirSync("/docs/b/.kbsyncignore");
  const seen = await seeFolders(source(), signal);
  expect(seen).toMatchObject({ files: 1, unreadable: 0 });
  expect(seen.warnings).toMatchObject([
    { path: "b", reason: expect.stringContaining("is a folder, not a file") as string },
    { path: ".kbsyncignore", reason: expect.stringContaining("`secret\\*`") as string },
  ]);
});
