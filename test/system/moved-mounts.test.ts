import { expect, it } from "vitest";
import { parseMounts } from "../../src/lib/mount-table.ts";
import { lateMounts, movedMounts } from "../../src/cli/systemd/unit-sources.ts";

const line = (root: string, path: string, device = "254:0", id = 36): string =>
  `${id} 35 ${device} ${root} ${path} rw,noatime master:1 - ext4 /dev/root rw,errors=continue`;

it("reads mounts, with spaces in their names and lines that are none", () => {
  expect(parseMounts(`${line(String.raw`/srv/my\040docs`, String.raw`/srv/my\040docs`)}\nnothing\n`)).toEqual(
    [{ id: 36, device: "254:0", root: "/srv/my docs", path: "/srv/my docs" }],
  );
});

const BEFORE = [line("/", "/"), line("/srv/a", "/srv/a"), line("/srv/b", "/srv/b")];

it.each<[string, readonly string[], readonly { path: string; root: string }[]]>([
  ["nothing moved", BEFORE, []],
  [
    "one was renamed",
    [line("/", "/"), line("/srv/old", "/srv/a"), line("/srv/b", "/srv/b")],
    [{ path: "/srv/a", root: "/srv/old" }],
  ],
  [
    "one was removed",
    [line("/", "/"), line("/srv/a", "/srv/a"), line("/srv/b//deleted", "/srv/b")],
    [{ path: "/srv/b", root: "/srv/b//deleted" }],
  ],
  ["a disk was mounted over one", [...BEFORE, line("/", "/srv/a", "8:1")], []],
  ["one is no mount any more", [line("/", "/")], []],
  ["another folder moved", [...BEFORE, line("/x", "/srv/c")], []],
])("finds the mounts that moved: %s", (_name, now, moved) => {
  const parse = (lines: readonly string[]) => parseMounts(lines.join("\n"));
  expect(movedMounts(parse(BEFORE), parse(now), ["/srv/a", "/srv/b"])).toEqual(moved);
});

/** Of a unit: a folder with a mount of its own, one that was not there, and one that lies open. */
const AT_START = [line("/", "/"), line("/", "/srv", "0:40"), line("/docs", "/srv/disk/docs", "8:1")];
it.each<[string, string | undefined, readonly string[]]>([
  ["no mount", undefined, []],
  ["a disk at a folder that was not there", line("/", "/srv/late/docs", "8:2", 50), ["/srv/late/docs"]],
  ["a disk above a folder that was not there", line("/", "/srv/late", "8:2", 50), ["/srv/late/docs"]],
  ["a disk below a folder that was not there", line("/", "/srv/late/docs/x", "8:2", 50), []],
  ["a disk beside it", line("/", "/srv/later", "8:2", 50), []],
  ["another disk over a folder", line("/", "/srv/disk/docs", "8:3", 50), ["/srv/disk/docs"]],
  ["another disk over the folder above one", line("/", "/srv/disk", "8:3", 50), ["/srv/disk/docs"]],
  [
    "another disk in place of a mount, with its number",
    line("/", "/srv", "8:3", 36),
    ["/srv/late/docs", "/srv/disk/docs"],
  ],
  ["the same disk again above a folder", line("/", "/srv/disk", "8:1", 50), []],
  ["the same folder again", line("/docs", "/srv/disk/docs", "8:1", 50), []],
  ["a disk at a folder that is seen as it is", line("/", "/etc/docs", "8:2", 50), []],
])("since the start of mounts, %s", (_name, added, late) => {
  const before = parseMounts(AT_START.join("\n"));
  const now = [...before, ...parseMounts(added ?? "")];
  const paths = ["/srv/late/docs", "/srv/disk/docs", "/etc/docs"];
  expect(lateMounts(before, now, paths, new Set(["/srv/late/docs"])).map(({ path }) => path)).toEqual(late);
});
