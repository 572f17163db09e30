import { describe, expect, it } from "vitest";
import { locatePath } from "../../../src/cli/state/typed-path.ts";

const SEA = "/srv/sea";
const LAND = "/srv/land";

/** Locates a path where only these paths exist. */
const locate = (typed: string, exists: readonly string[], cwd = "/home/ann", folders = [SEA, LAND]): string =>
  locatePath(typed, { cwd, folders, isKnown: (path) => exists.includes(path) });

describe("locatePath", () => {
  it.each([
    ["an absolute path", "/srv/sea/a.md", [], "/srv/sea/a.md"],
    ["a path relative to the working folder", "a.md", ["/home/ann/a.md"], "/home/ann/a.md"],
    ["a path relative to a source", "b/a.md", ["/srv/land/b/a.md"], "/srv/land/b/a.md"],
    ["what is in the working folder first", "a.md", ["/home/ann/a.md", "/srv/sea/a.md"], "/home/ann/a.md"],
    ["a path with its line", "a.md:12", ["/srv/sea/a.md"], "/srv/sea/a.md"],
    ["a path with its lines", "a.md:12-14", ["/srv/sea/a.md"], "/srv/sea/a.md"],
    ["a path with its page", "a b.pdf (page 3)", ["/srv/sea/a b.pdf"], "/srv/sea/a b.pdf"],
    ["a path with its rows", 'a.xlsx (sheet "Q1 (old)", rows 2–3)', ["/srv/sea/a.xlsx"], "/srv/sea/a.xlsx"],
    ["a name that looks like a line, if it exists", "a:12", ["/srv/sea/a:12", "/srv/sea/a"], "/srv/sea/a:12"],
    ["a path that exists nowhere, below the working folder", "gone.md", [], "/home/ann/gone.md"],
  ])("a typed path finds %s", (_name, typed, exists, found) => {
    expect(locate(typed, exists)).toBe(found);
  });

  it("takes a path that exists nowhere for one below the only source", () => {
    expect(locate("gone.md", [], "/home/ann", [SEA])).toBe("/srv/sea/gone.md");
    expect(locate("gone.md", [], "/srv/sea/b", [SEA])).toBe("/srv/sea/b/gone.md");
  });

  it("asks which one is meant if several sources have it", () => {
    expect(() => locate("a.md", ["/srv/sea/a.md", "/srv/land/a.md"])).toThrow("2 sources have a.md");
  });
});
