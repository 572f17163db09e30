import { beforeEach, describe, expect, it } from "vitest";
import {
  type FollowedLinks,
  type LinkTrace,
  openFollowedLinks,
} from "../../../src/sync/rules/followed-links.ts";

const FILE: LinkTrace = { points: ["l.md", "d/a.md"], target: "d/a.md", isFolder: false };

let links: FollowedLinks;
let reported: number;
/** A scan that noted these paths. */
const scan = (traces: Readonly<Record<string, LinkTrace>>, scope?: readonly string[]): void => {
  for (const [path, trace] of Object.entries(traces)) links.note(path, trace);
  links.retain(scope, new Set(Object.keys(traces)));
};
beforeEach(() => {
  links = openFollowedLinks();
  reported = 0;
  links.listen(() => (reported += 1));
});

describe("a listener is notified", () => {
  it("when a scan found a link, and not when the next one finds it as it was", () => {
    scan({});
    expect(reported).toBe(0);
    scan({ "l.md": FILE });
    scan({ "l.md": { ...FILE, points: [...FILE.points] } });
    expect(reported).toBe(1);
  });

  it.each<[what: string, trace: LinkTrace]>([
    ["leads to another target", { ...FILE, target: "d/b.md" }],
    ["leads to a folder now", { ...FILE, isFolder: true }],
    ["is reached by one link more", { ...FILE, points: [...FILE.points, "m.md"] }],
    ["is reached by one link less", { ...FILE, points: ["l.md"] }],
    ["is reached by another link", { ...FILE, points: ["l.md", "d/b.md"] }],
  ])("when a link %s", (_what, trace) => {
    scan({ "l.md": FILE });
    scan({ "l.md": trace });
    expect(reported).toBe(2);
  });

  it("when a link is gone, in the scope of the scan alone", () => {
    scan({ "f/l.md": FILE, "fg/l.md": FILE, f: FILE });
    scan({}, ["g", "f/l"]);
    expect(reported).toBe(1);
    scan({}, ["f"]);
    expect(reported).toBe(2);
    expect(links.touchedBy("d/a.md")).toEqual(["fg/l.md"]);
    scan({});
    expect(reported).toBe(3);
    expect(links.touchedBy("d/a.md")).toEqual([]);
  });

  it("no more once it is taken away", () => {
    links.listen(undefined);
    scan({ "l.md": FILE });
    expect(reported).toBe(0);
  });
});

describe("a change touches", () => {
  it("every path that leads to it or below it, and none that it is itself", () => {
    scan({ "l.md": FILE, f: { points: ["f", "d"], target: "d", isFolder: true } });
    expect(links.touchedBy("d/a.md").toSorted()).toEqual(["f/a.md", "l.md"]);
    expect(links.touchedBy("d").toSorted()).toEqual(["f", "l.md"]);
    expect(links.touchedBy("f")).toEqual([]);
    expect(links.touchedBy("e")).toEqual([]);
  });

  it("what a later scan found as well", () => {
    scan({ "l.md": FILE });
    expect(links.touchedBy("d/b.md")).toEqual([]);
    scan({ "l.md": FILE, "m.md": { ...FILE, points: ["m.md"], target: "d/b.md" } });
    expect(links.touchedBy("d/b.md")).toEqual(["m.md"]);
  });
});

it("watched are the folders that links lead to, and all above the links and their ends", () => {
  scan({
    "l.md": FILE,
    f: { points: ["f", "x/y/z"], target: "x/y/z", isFolder: true },
    "broken.md": { points: ["broken.md", "later/b.md"], target: undefined, isFolder: true },
  });
  const { folders, points } = links.watches();
  expect(folders.toSorted()).toEqual(["d", "later", "x", "x/y", "x/y/z"]);
  expect(points.toSorted()).toEqual(["broken.md", "d/a.md", "f", "l.md", "later/b.md", "x/y/z"]);
});
