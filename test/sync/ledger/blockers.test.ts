import { describe, expect, it } from "vitest";
import { blockersOf } from "../../../src/sync/ledger/blockers.ts";

const going = {
  lost: null,
  lostKind: null,
  held: 0,
  holdReason: null,
  halted: null,
  haltCode: null,
  haltUnit: null,
  haltRoot: undefined,
};

describe("what waits for a person", () => {
  it("nothing waits for a person while a source works", () => {
    expect(blockersOf(going)).toEqual([]);
  });

  it("lists what waits with its reason, most important first", () => {
    expect(
      blockersOf({
        ...going,
        lost: "most are gone",
        halted: "no folder",
        held: 1,
        holdReason: "too many",
      }),
    ).toMatchObject([
      { kind: "lost", reason: "most are gone", remedy: expect.stringContaining("kbsync approve") as string },
      { kind: "halted", reason: "no folder" },
      { kind: "held", reason: "too many", remedy: expect.stringContaining("kbsync approve") as string },
    ]);
  });

  it("suggests waiting, not restoring, while the service is merely asked again", () => {
    const [found] = blockersOf({ ...going, lost: "the lists differ", lostKind: "unclear" });
    expect(found?.remedy).toMatch(/^wait until .*continues by itself.*`kbsync approve`/);
    expect(found?.remedy).not.toContain("restore the service's data");
  });

  it("suggests taking over what another kbsync wrote", () => {
    const [found] = blockersOf({ ...going, lost: "another kbsync writes them", lostKind: "identity" });
    expect(found?.remedy).toMatch(/`kbsync approve` takes the documents over/);
  });

  it("describes deletes held for a reason that is no longer known", () => {
    expect(blockersOf({ ...going, held: 2 })).toMatchObject([{ reason: "deletes held before" }]);
  });

  it.each<[what: string, facts: Partial<Parameters<typeof blockersOf>[0]>, remedy: RegExp]>([
    [
      "another folder can be approved",
      { haltRoot: { dev: 1, ino: 1 } },
      /`kbsync approve` to accept this one/,
    ],
    ["a missing folder must be put back", { haltCode: "missing" }, /^mount it or put it back/],
    ["an unreadable folder must be checked", { haltCode: "unreadable" }, /owner and mode/],
    [
      "a folder that a unit does not show needs that unit's restart",
      { haltCode: "not-shown", haltUnit: "kbsync@srv-x\\x20y.service" },
      /`systemctl restart 'kbsync@srv-x\\x20y\.service'` shows/,
    ],
  ])("%s", (_what, facts, remedy) => {
    const [found] = blockersOf({ ...going, halted: "a reason", ...facts });
    expect(found?.remedy).toMatch(remedy);
  });
});
