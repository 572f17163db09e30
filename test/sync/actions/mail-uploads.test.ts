import { describe, expect, it } from "vitest";
import { openMailUploads } from "../../../src/sync/actions/mail-uploads.ts";
import type { Remote } from "../../../src/sync/remote/remote.ts";
import { MAIL_TYPE } from "../../../src/wire/constants.ts";

const HOUR_MS = 3_600_000;
const signal = new AbortController().signal;

/** The ledger's record about mails, and a service that reports whether it reads them. */
function open({ readsMails = false, hasTextMails = true, offers = true } = {}) {
  const kept = { readsMails, rereads: 0, asked: 0, started: 0, nowMs: 5 * HOUR_MS };
  const ledger = {
    write: async (change: () => void) => {
      await Promise.resolve();
      change();
    },
    sources: {
      readsMails: () => kept.readsMails,
      setReadsMails: (reads: boolean) => void (kept.readsMails = reads),
    },
    files: { hasTextMails: () => hasTextMails, rereadTextMails: () => void (kept.rereads += 1) },
  };
  const collections: Remote["collections"] = async () => {
    kept.asked += 1;
    await Promise.resolve();
    mails.learn(offers ? ["application/pdf", MAIL_TYPE] : ["application/pdf"]);
    return { kind: "done", value: "unsupported" };
  };
  const mails = openMailUploads(ledger, { collections }, () => kept.nowMs);
  mails.onBegin(() => (kept.started += 1));
  return { mails, kept };
}

describe("reading mails", () => {
  it.each([true, false])(
    "whether a service reads mails is what the ledger says before the service is asked: %s",
    (readsMails) => {
      expect(open({ readsMails }).mails.isOffered()).toBe(readsMails);
    },
  );

  it("a service is asked once an hour whether it reads mails, and when it begins, mails that were sent as text are read again", async () => {
    const { mails, kept } = open();
    await mails.check(signal);
    expect([mails.isOffered(), kept.readsMails, kept.rereads, kept.started]).toEqual([true, true, 1, 1]);
    kept.nowMs += HOUR_MS - 1;
    await mails.check(signal);
    expect(kept.asked).toBe(1);
    kept.nowMs += 1;
    await mails.check(signal);
    expect([kept.asked, kept.rereads, kept.started]).toEqual([2, 1, 1]);
  });

  it("a service is asked once for all simultaneous callers whether it reads mails", async () => {
    const { mails, kept } = open();
    await Promise.all([mails.check(signal), mails.check(signal), mails.check(signal)]);
    expect([kept.asked, kept.rereads]).toEqual([1, 1]);
  });

  it("a service that no longer reads mails is recorded, and no mail is read again", async () => {
    const { mails, kept } = open({ readsMails: true, offers: false });
    await mails.check(signal);
    expect([mails.isOffered(), kept.readsMails, kept.rereads, kept.started]).toEqual([false, false, 0, 0]);
  });

  it.each([
    ["reads none, and some were sent as text", {}, 1],
    ["reads none, and none were sent as text", { hasTextMails: false }, 0],
    ["reads them", { readsMails: true }, 0],
  ])("a service that %s is asked again whether it reads mails: %j, %i times", async (_what, world, asked) => {
    const { mails, kept } = open(world);
    await mails.askAgain(signal);
    expect(kept.asked).toBe(asked);
  });
});
