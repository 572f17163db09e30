import { rmSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openWorld } from "../harness.ts";

it("a delete left by a former process follows the create of its file when that is back", async () => {
  const world = await openWorld({ collections: true });
  world.write("stays.txt", "what stays");
  world.write("a.txt", "one");
  await world.sync();
  const refusal = JSON.stringify({ success: false, message: "not now" });
  world.service.fault = ({ operation }) =>
    operation === "delete" ? { kind: "answer", status: 400, body: refusal } : undefined;
  rmSync(join(world.root, "a.txt"));
  await world.sync();

  world.write("a.txt", "two");
  let failures = 0;
  const texts = (): string => {
    const live = world.service.live().map(({ content }) => String(content));
    return live.sort((a, b) => a.localeCompare(b)).join(", ");
  };
  const atDelete: string[] = [];
  world.service.fault = ({ operation }) => {
    if (operation === "create" && failures++ < 2) return { kind: "answer", status: 503, body: refusal };
    if (operation === "delete") atDelete.push(texts());
    return undefined;
  };
  await world.sync();
  // The file is never without a resource.
  expect(atDelete).toEqual(["one, two, what stays"]);
  expect(texts()).toBe("two, what stays");
  await world.end();
});

it("a single pass does not send the delete of a resource while the create of its successor is parked", async () => {
  const world = await openWorld({ collections: true });
  world.write("stays.txt", "what stays");
  world.write("a.txt", "one");
  await world.sync();
  world.service.fault = ({ operation }) =>
    operation === "delete" ? { kind: "answer", status: 400, body: "{}" } : undefined;
  rmSync(join(world.root, "a.txt"));
  await world.sync();

  world.write("a.txt", "two");
  world.service.fault = ({ operation }) =>
    operation === "create" ? { kind: "answer", status: 500, body: "oops" } : undefined;
  await world.sync();
  const texts = (): string[] => world.service.live().map(({ content }) => String(content));
  expect(texts().toSorted()).toEqual(["one", "what stays"]);

  world.service.fault = () => undefined;
  await world.sync();
  expect(texts().toSorted()).toEqual(["two", "what stays"]);
  await world.end();
});
