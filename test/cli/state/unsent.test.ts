import { expect, it } from "vitest";
import { unsentLines } from "../../../src/cli/state/unsent.ts";

const FOLDERS = [
  { reading: 1, waiting: 2 },
  { reading: 1, waiting: 0 },
];
/** As a daemon left them. */
const LEFT = { folders: [{ reading: 0, waiting: 3 }], isLive: false };

it.each([
  ["a file that a daemon waits for", { folders: FOLDERS, isLive: true }, 1, "2 being read, 2 waiting"],
  ["documents of others", { folders: FOLDERS, isLive: true }, 5, "5 being read, 2 waiting"],
  ["a file that a daemon left at the service", LEFT, 2, "3 waiting"],
  ["documents of others without a daemon", LEFT, 5, "2 being read, 3 waiting"],
  ["nothing", { folders: [], isLive: true }, 0, undefined],
])("counts %s once", (_what, unsent, read, words) => {
  const expected = words === undefined ? [] : [`Not everything is searchable yet: ${words}.`];
  expect(unsentLines(unsent, { read, embed: 0 })).toEqual(expected);
});

it("says that a daemon does not answer", () => {
  const unsent = { folders: [], isLive: false, problem: "the daemon (process 7) does not answer" };
  expect(unsentLines(unsent, { read: 0, embed: 0 })).toEqual([
    "Not everything here may be up to date: the daemon (process 7) does not answer.",
  ]);
});
