import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { splitList } from "../../../../src/sync/send/remote/list-stream.ts";
import { anyCharacter } from "../../../any-character.ts";

async function* pieces(bytes: Buffer, cuts: readonly number[]): AsyncGenerator<Buffer> {
  let from = 0;
  for (const cut of [...new Set(cuts.map((each) => each % (bytes.length + 1)))].toSorted((a, b) => a - b)) {
    yield bytes.subarray(from, cut);
    from = cut;
  }
  yield bytes.subarray(from);
}

describe("reading a list as it arrives", () => {
  const json = fc.jsonValue({ maxDepth: 3 });
  const resource = fc.record({ _id: fc.string(), content: fc.string({ unit: anyCharacter }), more: json });
  it("passes on every resource and returns the rest, wherever the chunks are cut", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(resource, { maxLength: 5 }),
        fc.record({ message: fc.string({ unit: anyCharacter }), before: json, resources: json }),
        fc.array(fc.nat(), { maxLength: 20 }),
        fc.constantFrom(0, 2),
        async (resources, { message, before, resources: decoy }, cuts, indent) => {
          const answer = {
            before,
            resources: decoy,
            data: { before, resources, created: 0, nextCursor: null },
            message,
            success: true,
          };
          const seen: unknown[] = [];
          const rest = await splitList(
            pieces(Buffer.from(JSON.stringify(answer, undefined, indent)), cuts),
            (text) => seen.push(JSON.parse(text)),
          );
          // Through JSON once, as the expected value has no -0 and no lone surrogates then.
          const expected = JSON.parse(Buffer.from(JSON.stringify(answer)).toString()) as typeof answer;
          expect(seen).toEqual(expected.data.resources);
          expect(JSON.parse(rest)).toEqual({ ...expected, data: { ...expected.data, resources: [] } });
        },
      ),
    );
  });

  it("finds the end of every string, wherever its escapes are cut", async () => {
    const resources = ["\\", "\\\\", '"', '\\"', '\\\\"', '"\\', "\\n\n"].map((content) => ({ content }));
    const bytes = Buffer.from(JSON.stringify({ data: { resources }, success: true }));
    for (let size = 1; size <= 9; size += 1)
      for (let from = 0; from < size; from += 1) {
        const cuts: number[] = [];
        for (let at = from; at < bytes.length; at += size) cuts.push(at);
        const seen: unknown[] = [];
        const rest = await splitList(pieces(bytes, cuts), (text) => seen.push(JSON.parse(text)));
        expect([seen, JSON.parse(rest)]).toEqual([resources, { data: { resources: [] }, success: true }]);
      }
  });

  it.each([
    { name: "a page without an end", head: "<html>" },
    { name: "a resource without an end", head: '{"data":{"resources":[{"_id":"a","content":"' },
  ])("buffers at most a bounded part of $name", async ({ head }) => {
    const megabyte = Buffer.alloc(1024 * 1024, "x");
    let sent = 0;
    async function* endless(): AsyncGenerator<Buffer> {
      yield Buffer.from(head);
      for (; sent < 200; sent += 1) yield await Promise.resolve(megabyte);
    }
    await expect(splitList(endless(), () => undefined)).rejects.toThrow("longer than");
    expect(sent).toBeLessThan(100);
  });

  it("leaves no valid JSON of a truncated answer", async () => {
    const text = JSON.stringify({
      success: true,
      data: { resources: [{ _id: "a" }, { _id: "b" }], created: 0 },
    });
    for (let length = 0; length < text.length; length += 1) {
      const rest = await splitList(pieces(Buffer.from(text.slice(0, length)), []), () => undefined);
      expect(() => JSON.parse(rest) as unknown, `cut at ${length}`).toThrow(SyntaxError);
    }
  });
});
