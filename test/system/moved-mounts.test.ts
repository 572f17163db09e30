import { expect, it } from "vitest";
import { parseMounts } from "../../src/lib/mount-table.ts";
import { movedMounts } from "../../src/system/moved-mounts.ts";

const line = (root: string, path: string, device = "254:0"): string =>
  `36 35 ${device} ${root} ${path} rw,noatime master:1 - ext4 /dev/root rw,errors=continue`;

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
])("%s", (_name, now, moved) => {
  const parse = (lines: readonly string[]) => parseMounts(lines.join("\n"));
  expect(movedMounts(parse(BEFORE), parse(now), ["/srv/a", "/srv/b"])).toEqual(moved);
});
