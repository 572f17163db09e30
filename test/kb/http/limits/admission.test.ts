import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { openAdmission } from "../../../../src/kb/http/limits/admission.ts";

function ready(limits: Parameters<typeof openAdmission>[0]) {
  const admission = openAdmission(limits);
  admission.become("ready");
  return admission;
}

describe("admission", () => {
  it("admission is empty only after every request has left, even if one leaves several times", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 50 }), { minLength: 1, maxLength: 10 }),
        fc.infiniteStream(fc.nat()),
        async (bodies, picks) => {
          const admission = ready({ requests: 100, bodyBytes: 10_000 });
          const inside = bodies.map((bytes, at) => {
            const entered = admission.enter(`account ${at % 3}`, "long");
            entered.hold(bytes);
            return entered;
          });
          let empty = false;
          const waiting = admission.empty(10_000).then((outcome) => {
            empty = true;
            return outcome;
          });
          while (inside.length > 0) {
            await Promise.resolve();
            expect(empty).toBe(false);
            const [entered] = inside.splice((picks.next().value ?? 0) % inside.length, 1);
            entered?.leave();
            entered?.leave();
          }
          expect(await waiting).toBe("empty");
        },
      ),
    );
  });

  it("counts requests, and bytes as they arrive, and releases both", () => {
    const admission = ready({ requests: 4, bodyBytes: 100 });
    const first = admission.enter("a", "long");
    const second = admission.enter("a", "long");
    admission.enter("a", "long");
    expect(() => admission.enter("a", "long")).toThrow("More than 4 requests");
    first.hold(70);
    expect(() => second.hold(10)).toThrow("more than 100 bytes");
    second.hold(5);
    first.release(60);
    second.hold(50);
    first.leave();
    first.hold(1000); // what comes behind the end counts no more
    admission.enter("a", "long").hold(5);
  });

  it("leaves slots and bytes for other accounts, however many one account takes", () => {
    const admission = ready({ requests: 8, bodyBytes: 1000 });
    const greedy = Array.from({ length: 6 }, () => admission.enter("greedy", "long"));
    expect(() => admission.enter("greedy", "long")).toThrow("in flight");
    greedy[0]?.hold(750);
    expect(() => greedy[1]?.hold(1)).toThrow("in flight");
    admission.enter("other", "long").hold(180);
    admission.enter("third", "long").hold(50);
  });

  it("reserves bytes for short bodies, however many a long one holds", () => {
    const admission = ready({ requests: 10, bodyBytes: 100 });
    admission.enter("a", "long").hold(100);
    expect(() => admission.enter("b", "long").hold(1)).toThrow("bytes");
    admission.enter("a", "short").hold(1000);
    admission.enter("b", "short").hold(1000);
  });

  it("counts requests that ingest a document separately, so that searches remain possible", () => {
    const admission = ready({ requests: 10, bodyBytes: 100, ingests: 1 });
    const entered = admission.enter("a", "document");
    expect(() => admission.enter("b", "document")).toThrow("More than 1 documents");
    admission.enter("a", "short");
    entered.leave();
    entered.leave();
    admission.enter("a", "document");
  });

  it("holds nothing for a refused request", () => {
    const admission = ready({ requests: 10, bodyBytes: 100, ingests: 1 });
    const entered = admission.enter("a", "document");
    for (let tries = 0; tries < 20; tries += 1)
      expect(() => admission.enter("b", "document")).toThrow("documents");
    entered.leave();
    expect(admission.inFlight()).toBe(0);
  });

  it("stops waiting for requests at the timeout", async () => {
    const admission = ready({ requests: 2, bodyBytes: 100 });
    admission.enter("a", "short");
    expect(await admission.empty(1)).toBe("timeout");
  });
});
