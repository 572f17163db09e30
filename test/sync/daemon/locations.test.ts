import { afterEach, beforeEach, expect, it } from "vitest";
import { xlsx } from "../../formats/office-fixture.ts";
import { openWorld, type World } from "./harness.ts";

const answer = (status: number) =>
  ({ kind: "answer", status, body: '{"success":false,"message":"no"}' }) as const;

let world: World;
beforeEach(async () => {
  world = await openWorld({ collections: true });
});
afterEach(() => world.end());

/** Creates and then updates a workbook, each in its own process. Returns the locations that were sent. */
async function sendTwice(): Promise<unknown[]> {
  for (const item of ["Bolt", "Nut"]) {
    world.write("b.xlsx", xlsx({ Prices: [["Item"], [item]] }));
    await world.sync();
  }
  return world.service.requests
    .filter(({ operation }) => operation === "create" || operation === "update")
    .map(({ body }) => (body as { locations?: unknown }).locations);
}

it("sends the locations of a text to a service that takes them", async () => {
  world.service.locations = true;
  const locations = [
    { sheet: "Prices" },
    { sheet: "Prices", rows: { first: 1, last: 1 } },
    { sheet: "Prices", rows: { first: 2, last: 2 } },
  ].map((each) => expect.objectContaining(each) as unknown);
  expect(await sendTwice()).toEqual([locations, locations]);
  // The second process has no answer of its own yet.
  expect(world.service.count("collections")).toBe(2);
});

it("sends no locations to a service that does not declare that it takes them", async () => {
  expect(await sendTwice()).toEqual([undefined, undefined]);
});

it("sends no locations to a service that does not list its collections", async () => {
  world.service.fault = ({ operation }) => (operation === "collections" ? answer(404) : undefined);
  expect(await sendTwice()).toEqual([undefined, undefined]);
});

it("holds a text with locations back until the service declares whether it takes them", async () => {
  world.service.locations = true;
  await sendTwice();
  let unanswered = 3;
  world.service.fault = ({ operation }) =>
    operation === "collections" && unanswered-- > 0 ? answer(503) : undefined;
  const before = world.service.count("update");
  world.write("b.xlsx", xlsx({ Prices: [["Item"], ["Screw"]] }));
  await world.sync();
  expect(unanswered).toBeLessThan(0);
  expect(world.service.count("update")).toBe(before + 1);
  expect(world.service.requests.at(-1)?.body).toMatchObject({ locations: expect.any(Array) as unknown });
});

it("asks whether locations are taken only for a text that has some", async () => {
  world.write("a.md", "# A\n");
  await world.sync();
  const asked = world.service.count("collections");
  world.write("a.md", "# B\n");
  await world.sync();
  expect(world.service.count("collections")).toBe(asked);
});
