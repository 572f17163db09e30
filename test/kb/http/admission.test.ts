import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { openAdmission } from "../../../src/kb/http/admission.ts";

describe("admission", () => {
  it("knows that it is empty only when every request has left, however often each says so", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 50 }), { minLength: 1, maxLength: 10 }),
        fc.infiniteStream(fc.nat()),
        async (bodies, picks) => {
          const admission = openAdmission({ requests: 10, bodyBytes: 1000 });
          admission.become("ready");
          const inside = bodies.map((bytes) => admission.enter(bytes));
          let empty = false;
          const waiting = admission.empty(10_000).then((outcome) => {
            empty = true;
            return outcome;
          });
          while (inside.length > 0) {
            await Promise.resolve();
            expect(empty).toBe(false);
            const [leave] = inside.splice((picks.next().value ?? 0) % inside.length, 1);
            leave?.();
            leave?.();
          }
          expect(await waiting).toBe("empty");
        },
      ),
    );
  });

  it("counts requests and bytes, and lets go of both", () => {
    const admission = openAdmission({ requests: 2, bodyBytes: 100 });
    admission.become("ready");
    const leaveFirst = admission.enter(80);
    expect(() => admission.enter(30)).toThrow("more than 100 bytes");
    const leaveSecond = admission.enter(20);
    expect(() => admission.enter(0)).toThrow("More than 2 requests");
    leaveFirst();
    admission.enter(80);
    leaveSecond();
    expect(() => admission.enter(500)).toThrow("bytes");
  });

  it("counts what takes a document in apart, so that searches stay possible", () => {
    const admission = openAdmission({ requests: 10, bodyBytes: 100, ingests: 1 });
    admission.become("ready");
    const leave = admission.enter(0, true);
    expect(() => admission.enter(0, true)).toThrow("More than 1 documents");
    admission.enter(0);
    leave();
    leave();
    admission.enter(0, true);
    expect(() => admission.enter(0, true)).toThrow("More than 1 documents");
  });

  it("gives up waiting at its bound", async () => {
    const admission = openAdmission({ requests: 2, bodyBytes: 100 });
    admission.become("ready");
    admission.enter(0);
    expect(await admission.empty(1)).toBe("timeout");
  });
});
