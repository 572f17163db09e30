import { describe, expect, it } from "vitest";
import {
  commandWord,
  emptyFolder,
  escapePath,
  restOfLine,
  unitWord,
  withDirective,
} from "../../src/system/unit-text.ts";

const UNIT =
  "[Unit]\nDescription=a\n\n[Service]\nExecStart=/bin/a\n# why\nBind=x\nBind=y\n\n[Install]\nWantedBy=b\n";

describe("a directive of a unit", () => {
  it.each<[string, string, readonly string[], string]>([
    ["is replaced where it stood", "ExecStart", ["/bin/b c"], UNIT.replace("/bin/a", "/bin/b c")],
    ["of several lines becomes one", "Bind", ["z"], UNIT.replace("Bind=x\nBind=y", "Bind=z")],
    ["becomes several lines", "ExecStart", ["1", "2"], UNIT.replace("/bin/a", "1\nExecStart=2")],
    ["goes", "Bind", [], UNIT.replace("Bind=x\nBind=y\n", "")],
    [
      "that is new comes at the end of its section",
      "User",
      ["me"],
      UNIT.replace("Bind=y\n", "Bind=y\nUser=me\n"),
    ],
    [
      "whose name begins another's is left alone",
      "Exec",
      ["x"],
      UNIT.replace("Bind=y\n", "Bind=y\nExec=x\n"),
    ],
    ["that is not there and is not wanted changes nothing", "User", [], UNIT],
  ])("a directive of a unit %s", (_name, key, values, expected) => {
    expect(withDirective(UNIT, "Service", key, values)).toBe(expected);
  });

  it("a directive of a unit needs its section", () => {
    expect(() => withDirective(UNIT, "Timer", "OnBoot", ["1"])).toThrow(TypeError);
  });
});

it.each([
  ["/srv/handbook", "/srv/handbook", "/srv/handbook"],
  ["/srv/hand book", '"/srv/hand book"', '"/srv/hand book"'],
  ["/srv/100%", "/srv/100%%", "/srv/100%%"],
  ["/srv/a:b", '"/srv/a:b"', '"/srv/a:b"'],
  [String.raw`/srv/a"b\c`, String.raw`"/srv/a\"b\\c"`, String.raw`"/srv/a\"b\\c"`],
  ["/srv/$HOME", '"/srv/$HOME"', '"/srv/$$HOME"'],
  ["", '""', '""'],
])("the word %s stands for itself", (word, inUnit, inCommand) => {
  expect([unitWord(word), commandWord(word)]).toEqual([inUnit, inCommand]);
});

it("the rest of a line stands for itself, but for specifiers", () => {
  expect(restOfLine('/srv/my "key": 100%')).toBe('/srv/my "key": 100%%');
});

it.each(["/srv/key ", "/srv/key\\", "/srv/a\nUser=root", "/srv/a\u0001"])(
  "%j cannot end a line, and is refused",
  (path) => {
    expect(() => restOfLine(path)).toThrow(expect.objectContaining({ code: "usage", subject: path }));
  },
);

it.each([
  ["/srv", "/srv:ro"],
  ["/my data", '"/my data:ro"'],
  ["/100%", "/100%%:ro"],
  ["/a:b", String.raw`"/a\\:b:ro"`],
])("the folder %s is shown empty", (path, expected) => {
  expect(emptyFolder(path)).toBe(expected);
});

it.each([
  ["/srv/handbook", "srv-handbook"],
  ["/srv//handbook/", "srv-handbook"],
  ["/srv/my docs/ä.x", String.raw`srv-my\x20docs-\xc3\xa4.x`],
  ["/.hidden", String.raw`\x2ehidden`],
  ["/a-b/c_d:e", String.raw`a\x2db-c_d:e`],
  ["/", "-"],
])("systemd-escape --path %s", (path, expected) => {
  expect(escapePath(path)).toBe(expected);
});
