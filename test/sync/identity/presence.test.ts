import { describe, expect, it } from "vitest";
import type { ActionContext } from "../../../src/sync/send/context.ts";
import { askPresence } from "../../../src/sync/identity/presence.ts";

/** Queries a resource of a service that shows none by its id and answers this many changes of it with 404 first. */
async function ask(denials: number): Promise<readonly [presence: string, asked: number]> {
  let asked = 0;
  const update = async (): Promise<unknown> => {
    asked += 1;
    return await Promise.resolve(
      asked <= denials ? { kind: "gone" } : { kind: "done", value: { record: {} } },
    );
  };
  const { signal } = new AbortController();
  const context = {
    remote: { update, read: async () => await Promise.resolve({ kind: "gone" }) },
    yieldSlot: async (wait: () => Promise<unknown>) => await wait(),
    timing: { goneAgainMs: [1, 1] },
    signal,
  } as unknown as ActionContext; // What a query uses.
  return [await askPresence(context, { docId: "doc", title: "a title", path: "a.txt" }, signal), asked];
}

describe("a resource that is asked after", () => {
  it("a resource that was twice reported missing exists if the third answer shows it", async () => {
    expect(await ask(2)).toEqual(["there", 3]);
  });

  it("a resource that is reported missing three times is gone", async () => {
    expect(await ask(Infinity)).toEqual(["gone", 3]);
  });
});
