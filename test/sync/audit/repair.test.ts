import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openResending } from "../../../src/sync/audit/repair.ts";
import type { Drifted } from "../../../src/sync/reconcile-service/sweep.ts";
import type { SourceSync } from "../../../src/sync/source/source.ts";
import { openWorkshop, type Workshop } from "../actions/fixture.ts";

let shop: Workshop;
beforeEach(() => {
  shop = openWorkshop();
});
afterEach(() => shop.close());

/** Sends files again that the service lost. Returns the requested checks; undefined: of the whole source. */
async function resend(
  names: readonly string[],
  busy: readonly string[] = [],
): Promise<(string | undefined)[]> {
  const hints: (string | undefined)[] = [];
  const source: Pick<SourceSync, "id" | "isBusy" | "hint"> = {
    id: shop.source.id,
    isBusy: (path) => busy.includes(path),
    hint: (path) => void hints.push(path),
  };
  // Only these parts of the source are used.
  const resending = openResending(shop.context({}), source as SourceSync);
  for (const name of names) {
    const row = shop.ledger.drift.byDoc(`doc of ${name}`);
    if (row === undefined) throw new Error(`no row of ${name}`);
    const drifted: Drifted = { row, kind: "missing", alterations: [], found: undefined };
    await resending.add(drifted);
  }
  await resending.finish();
  return hints;
}

async function addAll(names: readonly string[]): Promise<void> {
  await Promise.all(names.map((name) => shop.add(name, "agreed", `doc of ${name}`)));
  shop.ledger.flush();
}

describe("sending files again", () => {
  it("makes each row unsure, reports it, and has its file checked", async () => {
    await addAll(["a.md", "b.md", "busy.md"]);
    expect(await resend(["a.md", "b.md", "busy.md"], ["busy.md"])).toEqual(["a.md", "b.md"]);
    expect(["a.md", "b.md", "busy.md"].map((name) => shop.state(name))).toEqual([
      "unsure",
      "unsure",
      "agreed",
    ]);
    expect(shop.reports).toMatchObject([
      { path: "a.md", action: "audit", message: "the service no longer has it; it is sent again" },
      { path: "b.md", docId: "doc of b.md" },
    ]);
  });

  it("leaves a row that is no longer agreed", async () => {
    await addAll(["a.md"]);
    await shop.add("b.md", "parked", "doc of b.md");
    expect(await resend(["a.md", "b.md"])).toEqual(["a.md"]);
    expect(shop.state("b.md")).toBe("parked");
  });

  it.each([
    [1000, 1000],
    [1001, 1],
  ])("a resend of more than a thousand files is a check of the whole source (%i)", async (count, hints) => {
    const names = Array.from({ length: count }, (_, at) => `${at}.md`);
    await addAll(names);
    const asked = await resend(names);
    expect(asked).toHaveLength(hints);
    expect(asked.includes(undefined)).toBe(count > 1000);
  });
});
