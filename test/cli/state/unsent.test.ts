import { expect, it } from "vitest";
import { unsentLines } from "../../../src/cli/state/unsent.ts";

const FOLDERS = [
  { reading: 1, waiting: 2 },
  { reading: 1, waiting: 0 },
];
/** As the ledger has them, which cannot tell what the service reads. */
const LEFT = [{ reading: 0, waiting: 3 }];

it.each([
  ["a file that a daemon waits for", FOLDERS, 1, "2 being read, 2 waiting"],
  ["a file that a daemon is still sending", FOLDERS, 3, "2 being read, 2 waiting"],
  ["documents of others", FOLDERS, 5, "3 being read, 2 waiting"],
  ["a file that a daemon left at the service", LEFT, 2, "3 waiting"],
  ["documents of others without a daemon", LEFT, 5, "2 being read, 3 waiting"],
  ["nothing", [], 0, undefined],
])("counts %s once, as the status does", (_what, folders, read, words) => {
  const expected = words === undefined ? [] : [`Not everything is searchable yet: ${words}.`];
  expect(unsentLines({ folders }, { read, embed: 0 })).toEqual(expected);
});

it("says that a daemon does not answer", () => {
  const unsent = { folders: [], problem: "the daemon (process 7) does not answer" };
  expect(unsentLines(unsent, { read: 0, embed: 0 })).toEqual([
    "Not everything here may be up to date: the daemon (process 7) does not answer.",
  ]);
});
