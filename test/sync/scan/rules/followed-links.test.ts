import { beforeEach, describe, expect, it } from "vitest";
import {
  type FollowedLinks,
  type LinkTrace,
  openFollowedLinks,
} from "../../../../src/sync/scan/rules/followed-links.ts";

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
  it("notifies the listener when a scan finds a new link, and not when it is unchanged", () => {
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
  ])("notifies the listener when a link %s", (_what, trace) => {
    scan({ "l.md": FILE });
    scan({ "l.md": trace });
    expect(reported).toBe(2);
  });

  it("notifies the listener when a link in the scope of the scan is gone", () => {
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

  it("does not notify a removed listener", () => {
    links.listen(undefined);
    scan({ "l.md": FILE });
    expect(reported).toBe(0);
  });
});

describe("a change touches", () => {
  it("maps a change to every path that leads to it or below it, without the path itself", () => {
    scan({ "l.md": FILE, f: { points: ["f", "d"], target: "d", isFolder: true } });
    expect(links.touchedBy("d/a.md").toSorted()).toEqual(["f/a.md", "l.md"]);
    expect(links.touchedBy("d").toSorted()).toEqual(["f", "l.md"]);
    expect(links.touchedBy("f")).toEqual([]);
    expect(links.touchedBy("e")).toEqual([]);
  });

  it("maps a change to paths that a later scan found", () => {
    scan({ "l.md": FILE });
    expect(links.touchedBy("d/b.md")).toEqual([]);
    scan({ "l.md": FILE, "m.md": { ...FILE, points: ["m.md"], target: "d/b.md" } });
    expect(links.touchedBy("d/b.md")).toEqual(["m.md"]);
  });
});

it("watches the folders that links lead to, and those above the links and their ends", () => {
  scan({
    "l.md": FILE,
    f: { points: ["f", "x/y/z"], target: "x/y/z", isFolder: true },
    "broken.md": { points: ["broken.md", "later/b.md"], target: undefined, isFolder: true },
  });
  const { folders, points } = links.watches();
  expect(folders.toSorted()).toEqual(["d", "later", "x", "x/y", "x/y/z"]);
  expect(points.toSorted()).toEqual(["broken.md", "d/a.md", "f", "l.md", "later/b.md", "x/y/z"]);
});
