import { linkSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { SINGLE_DELETES } from "../daemon/harness.ts";
import { makeTree, removeTree } from "../scan/tree.ts";
import { openFollowed, type Followed } from "./followed.ts";

let followed: Followed | undefined;
afterEach(async () => {
  await followed?.end();
  followed = undefined;
});

describe("symbolic links", () => {
  it("leaves links out, reports them, and deletes the resource of a file that becomes a link", async () => {
    const elsewhere = makeTree({ "secret.txt": "secret" });
    try {
      followed = await openFollowed({ "a.txt": "a", "b.txt": "b" }, { timing: SINGLE_DELETES });
      const { at, agrees, sent, daemon } = followed;
      symlinkSync(join(elsewhere, "secret.txt"), at("out.txt"));
      symlinkSync(elsewhere, at("folder"));
      symlinkSync("a.txt", at("in.txt"));
      const skipped = await daemon.leftOut({ limit: 10 }, AbortSignal.timeout(10_000));
      const message = "a symbolic link: no link is followed";
      expect(skipped).toMatchObject(["folder", "in.txt", "out.txt"].map((path) => ({ path, message })));
      expect(sent()).toEqual({});
      unlinkSync(at("b.txt"));
      symlinkSync("a.txt", at("b.txt"));
      await agrees(() => ({ "a.txt": "a" }));
      expect(sent()).toEqual({ delete: 1 });
    } finally {
      removeTree(elsewhere);
    }
  });
});

describe("hard links", () => {
  it("hard links are documents of their own; what is written through one is found under both, and each may go alone", async () => {
    followed = await openFollowed({ "a.txt": "one", "sub/x.txt": "x" }, { timing: SINGLE_DELETES });
    const { at, agrees, sent, ids } = followed;
    linkSync(at("a.txt"), at("sub/b.txt"));
    await agrees();
    expect(sent()).toEqual({ create: 1 });
    const { "sub/b.txt": remaining } = ids();
    writeFileSync(at("a.txt"), "two, longer");
    // The write came through the other name, in another folder: a hint for this one alone.
    await followed.daemon.retry();
    await agrees();
    expect(sent()).toEqual({ update: 2 });
    unlinkSync(at("a.txt"));
    await agrees();
    expect(sent()).toEqual({ delete: 1 });
    expect(ids()["sub/b.txt"]).toBe(remaining);
  });
});
