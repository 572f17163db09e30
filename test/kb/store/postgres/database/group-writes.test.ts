import { expect, it } from "vitest";
import {
  openGroupWrites,
  type GroupWritesOptions,
} from "../../../../../src/kb/store/postgres/database/group-writes.ts";

type Options = GroupWritesOptions<string, string>;

/** Opens groups whose writes the test ends, with a log of the groups as they were written. */
function openGroups(options: Partial<Options> = {}) {
  const log: string[] = [];
  const started: (() => void)[] = [];
  const write: Options["write"] = async (key, take) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    started.push(resolve);
    await promise;
    const members = take();
    log.push(`${key}: ${members.join(" ")}`);
    return members.map((member) => member.toUpperCase());
  };
  const groups = openGroupWrites<string, string>({
    write,
    isOfAll: () => false,
    waitingMax: 1000,
    full: () => new Error("full"),
    ...options,
  });
  return { groups, log, startNext: () => started.shift()?.() };
}

it("writes together what waits when a writer becomes free, in the order of arrival, and the keys apart", async () => {
  const { groups, log, startNext } = openGroups();
  const first = ["a", "b", "c"].map((member) => groups.add("k", member, 1));
  const other = groups.add("other", "d", 1);
  startNext();
  await expect(Promise.all(first)).resolves.toEqual(["A", "B", "C"]);
  startNext();
  await expect(other).resolves.toBe("D");
  const late = groups.add("k", "e", 1);
  startNext();
  await expect(late).resolves.toBe("E");
  expect(log).toEqual(["k: a b c", "other: d", "k: e"]);
});

it("begins a second group of a key only when it is full", async () => {
  const { groups, log, startNext } = openGroups();
  const adding = Array.from({ length: 130 }, (_, at) => groups.add("k", String(at), 1));
  startNext();
  await adding[63];
  startNext();
  await adding[127];
  startNext();
  await Promise.all(adding);
  expect(log.map((group) => group.split(" ").length - 1)).toEqual([64, 64, 2]);
});

it("bounds a group by the number and the characters of its members", async () => {
  const sizes: number[] = [];
  const { groups } = openGroups({
    write: async (_key, take) => {
      await Promise.resolve();
      const members = take();
      sizes.push(members.length);
      return members;
    },
  });
  await Promise.all(Array.from({ length: 200 }, (_, at) => groups.add("many", String(at), 1)));
  expect(Math.max(...sizes)).toBeLessThanOrEqual(64);
  sizes.length = 0;
  await Promise.all(["a", "b", "c"].map((member) => groups.add("long", member, 3_000_000)));
  expect(sizes).toEqual([1, 1, 1]);
});

it("writes the members of a failed group one by one, so that none fails because of another", async () => {
  const { groups } = openGroups({
    write: async (_key, take) => {
      await Promise.resolve();
      const members = take();
      if (members.includes("bad")) throw new Error(`failed: ${members.join(" ")}`);
      return members;
    },
  });
  const outcomes = await Promise.allSettled(["a", "bad", "b"].map((member) => groups.add("k", member, 1)));
  expect(outcomes).toEqual([
    { status: "fulfilled", value: "a" },
    { status: "rejected", reason: new Error("failed: bad") },
    { status: "fulfilled", value: "b" },
  ]);
  await expect(groups.add("k", "c", 1)).resolves.toBe("c");
});

it("fails a member alone whose outcome is an error", async () => {
  const { groups } = openGroups({
    write: async (_key, take) => take().map((member) => (member === "bad" ? new Error("no room") : member)),
  });
  const outcomes = await Promise.allSettled(["a", "bad"].map((member) => groups.add("k", member, 1)));
  expect(outcomes).toEqual([
    { status: "fulfilled", value: "a" },
    { status: "rejected", reason: new Error("no room") },
  ]);
});

it("tries nothing again after a failure that is of all members", async () => {
  let writes = 0;
  const { groups } = openGroups({
    isOfAll: () => true,
    write: async (_key, take) => {
      await Promise.resolve();
      take();
      writes += 1;
      throw new Error("away");
    },
  });
  const outcomes = await Promise.allSettled(["a", "b"].map((member) => groups.add("k", member, 1)));
  expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(writes).toBe(1);
});

it("keeps a group as it is when its write starts over, and rejects what waits if it never began", async () => {
  const seen: string[] = [];
  const { groups } = openGroups({
    write: async (key, take) => {
      if (key === "away") throw new Error("away");
      await Promise.resolve();
      seen.push(take().join(" "));
      void groups.add("later", "x", 1).catch(() => undefined);
      seen.push(take().join(" "));
      return take();
    },
  });
  await Promise.all(["a", "b"].map((member) => groups.add("later", member, 1).catch(() => undefined)));
  expect(seen.slice(0, 2)).toEqual(["a b", "a b"]);
  await expect(groups.add("away", "c", 1)).rejects.toThrow("away");
});

it("refuses a member when too many wait", async () => {
  const { groups, startNext } = openGroups({ waitingMax: 2 });
  const two = ["a", "b"].map((member) => groups.add("k", member, 1));
  await expect(groups.add("k", "c", 1)).rejects.toThrow("full");
  startNext();
  await Promise.all(two);
});
