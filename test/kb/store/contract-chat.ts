import { describe, expect, it } from "vitest";
import type { LeasedJob, NewJob } from "../../../src/kb/queue/queue.ts";
import type { NewTurn, ThreadQuery } from "../../../src/kb/store/chat.ts";
import type { Store } from "../../../src/kb/store/store.ts";
import type { StoredFile } from "../../../src/kb/store/files.ts";
import { LATER, NOW, type StoreFixture } from "./store-fixture.ts";

const FAR = "2026-06-01T00:00:00.000Z";

/** Agents, threads and questions with a later answer. */
export function chatContract(fixture: StoreFixture): void {
  const { alone, newId } = fixture;
  const accountId = (): string => fixture.account.id;
  const file = (token: string): StoredFile => ({
    token,
    accountId: accountId(),
    name: "a.png",
    mediaType: "image/png",
    sizeBytes: 1,
    sha256: "e".repeat(64),
    createdAt: NOW,
  });
  const turn = (user: string, more: Partial<NewTurn> = {}): NewTurn => ({
    accountId: accountId(),
    agentId: "desk",

    threadId: "t",
    messageId: newId(),
    turn: { user, answer: `${user}!`, shown: JSON.stringify({ content: user }) },
    reads: [],
    recalls: undefined,
    files: [],
    images: [],
    nowIso: NOW,
    ...more,
  });
  const query = (more: Partial<ThreadQuery> = {}): ThreadQuery => ({
    accountId: accountId(),
    agentId: "desk",
    threadId: "t",
    turnsMax: 10,
    charsMax: 1000,
    imagesMax: 10,
    imagesSinceIso: "",
    ...more,
  });
  const asked = async (store: Store, more: Partial<ThreadQuery> = {}): Promise<string[]> =>
    (await store.records.thread(query(more))).turns.map(({ user }) => user);
  const imagesOf = async (store: Store, more: Partial<ThreadQuery> = {}): Promise<string[]> =>
    (await store.records.thread(query(more))).images.map(({ token }) => token);
  const job = (name = newId(), body = "{}"): NewJob => ({
    queue: "chat",
    accountId: accountId(),
    line: name,
    name,
    body,
    nowMs: 1000,
    jobsMax: 100,
  });
  const leased = async (store: Store, name: string): Promise<LeasedJob> => {
    await store.records.addQuestion(job(name));
    for (const { number, line } of await store.queue.due({ queue: "chat", nowMs: 1000, perLine: 1 })) {
      const found = line === name ? await store.queue.lease({ number, worker: "w", nowMs: 1000 }) : undefined;
      if (found !== undefined) return found;
    }
    throw new Error("a job just put is not due");
  };
  const delivery = (eventId: string) => ({
    accountId: accountId(),
    eventId,
    type: "chat.completion",
    body: "{}",
    to: { target: { url: "http://a.example/", headers: {} } },
    nowMs: 1000,
  });
  const due = async (store: Store): Promise<string[]> => {
    const found = await store.queue.due({ queue: "webhook", nowMs: 1000, perLine: 10 });
    const names = [];
    for (const { number } of found)
      names.push((await store.queue.lease({ number, worker: "reads", nowMs: 1000 }))?.name ?? "");
    await store.queue.release("reads");
    return names;
  };

  describe("a thread", () => {
    it("returns the turns of a thread oldest first, for its account and agent alone", async () => {
      const { store } = fixture;
      for (const user of ["a", "b", "c"]) await store.records.addTurn(turn(user));
      await store.records.addTurn(turn("other agent", { agentId: "other" }));
      await store.records.addTurn(turn("other thread", { threadId: "u" }));
      const foreign = (await store.records.ensureAccount(`foreign ${newId()}`)).id;
      await store.records.addTurn(turn("other account", { accountId: foreign }));
      expect((await store.records.thread(query())).turns).toMatchObject([
        { user: "a", answer: "a!" },
        { user: "b", answer: "b!" },
        { user: "c", answer: "c!" },
      ]);
      expect(await asked(store, { threadId: "nobody's" })).toEqual([]);
    });

    it("bounds the turns of a thread by number and by characters, and reports whether there are older ones", async () => {
      const { store } = fixture;
      for (const user of ["a", "b", "c"]) await store.records.addTurn(turn(user));
      const bounded = await store.records.thread(query({ turnsMax: 2 }));
      expect([bounded.turns.map(({ user }) => user), bounded.more]).toEqual([["b", "c"], true]);
      expect(await store.records.thread(query({ charsMax: 3 }))).toMatchObject({
        turns: [{ user: "c" }],
        more: true,
      });
      expect((await store.records.thread(query({ turnsMax: 3 }))).more).toBe(false);
    });

    it("returns what people see of the answers on request, and the turns before one", async () => {
      const { store } = fixture;
      for (const user of ["a", "b", "c"]) await store.records.addTurn(turn(user));
      const all = await store.records.thread(query({ withShown: true }));
      expect(all).toMatchObject({
        exists: true,
        turns: ["a", "b", "c"].map((content) => ({ shown: JSON.stringify({ content }), createdAt: NOW })),
      });
      expect((await store.records.thread(query())).turns[0]?.shown).toBe("");
      const beforeTurn = all.turns[2]?.number;
      expect(await asked(store, { beforeTurn })).toEqual(["a", "b"]);
      expect(await store.records.thread(query({ beforeTurn, turnsMax: 1 }))).toMatchObject({
        turns: [{ user: "b" }],
        more: true,
      });
    });

    it("lists the threads of an agent in pages, the last used first, for its account alone", async () => {
      const { store } = fixture;
      const list = (after?: { usedAt: string; number: number }, id = "desk", account = accountId()) =>
        store.records.threads({ accountId: account, id, after, limit: 2, questionChars: 3 });
      for (const [threadId, nowIso] of [
        ["old", NOW],
        ["twin", NOW],
        ["new", LATER],
      ] as const)
        await store.records.addTurn(turn("first", { threadId, nowIso }));
      await store.records.addTurn(turn("second", { threadId: "new", nowIso: LATER }));
      await store.records.addTurn(turn("other agent", { agentId: "other" }));
      await store.records.addFile(file("alone"), {
        thread: {
          accountId: accountId(),
          agentId: "images",
          threadId: "t",

          nowIso: NOW,
        },
      });
      const first = await list();
      expect(first).toMatchObject({
        threads: [{ threadId: "new", usedAt: LATER, turns: 2, question: "fir" }, { threadId: "twin" }],
        more: true,
      });
      const rest = await list(first.threads.at(-1));
      expect(rest).toMatchObject({ threads: [{ threadId: "old", turns: 1 }], more: false });
      expect((await list(undefined, "images")).threads).toMatchObject([{ turns: 0, question: null }]);
      const foreign = (await store.records.ensureAccount(`foreign ${newId()}`)).id;
      expect(await list(undefined, "desk", foreign)).toEqual({ threads: [], more: false });
    });

    it("removes a thread with its turns and its images' links, and a turn that knew of it is not written", async () => {
      const { store } = fixture;
      await store.records.addFile(file("unlinked"));
      await store.records.addTurn(turn("a", { images: ["unlinked"] }));
      await store.records.addTurn(turn("b", { threadId: "other" }));
      const { newest } = await store.records.thread(query());
      const name = { accountId: accountId(), agentId: "desk", threadId: "t" };
      const foreign = (await store.records.ensureAccount(`foreign ${newId()}`)).id;
      expect(await store.records.removeThread({ ...name, accountId: foreign })).toBe(false);
      expect(await store.records.removeThread(name)).toBe(true);
      expect(await store.records.removeThread(name)).toBe(false);
      expect(await store.records.thread(query())).toMatchObject({ exists: false, turns: [], images: [] });
      expect(await asked(store, { threadId: "other" })).toEqual(["b"]);
      expect(await store.records.unusedFiles(FAR, 100)).toContain("unlinked");
      await expect(store.records.addTurn(turn("late", { recalls: newest }))).rejects.toMatchObject({
        code: "reads_gone",
      });
    });

    it("stores the newest thousand turns and hundred images of a thread", { timeout: 60_000 }, async () => {
      const { store } = fixture;
      const turns = Array.from({ length: 1002 }, (_, index) => turn(String(index)));
      await Promise.all(turns.map((each) => store.records.addTurn(each)));
      const all = await store.records.thread(query({ turnsMax: 5000, charsMax: 1_000_000 }));
      expect([all.turns.length, all.turns[0]?.user, all.more]).toEqual([1000, "2", false]);
      const linkedAt = (index: number) => new Date(Date.parse(NOW) + index).toISOString();
      for (let index = 0; index < 101; index++) {
        const token = `image ${index}`;
        const link = { accountId: accountId(), agentId: "desk", threadId: "t" };
        await store.records.addFile(file(token), { thread: { ...link, nowIso: linkedAt(index) } });
      }
      const images = await imagesOf(store, { imagesMax: 500 });
      expect([images.length, images[0], images.at(-1)]).toEqual([100, "image 100", "image 1"]);
    });

    it("returns the images linked to a thread since a time, newest first; linking one again renews it", async () => {
      const { store } = fixture;
      for (const token of ["one", "two"]) await store.records.addFile(file(token));
      await store.records.addTurn(turn("a", { images: ["one"] }));
      await store.records.addTurn(turn("b", { images: ["two"], nowIso: LATER }));
      expect(await imagesOf(store)).toEqual(["two", "one"]);
      expect(await imagesOf(store, { imagesSinceIso: LATER })).toEqual(["two"]);
      await store.records.addTurn(turn("c", { images: ["one"], nowIso: FAR }));
      expect(await imagesOf(store)).toEqual(["one", "two"]);
      expect(await imagesOf(store, { imagesMax: 1 })).toEqual(["one"]);
      expect((await store.records.thread(query())).images[0]).toEqual({ ...file("one"), turnAt: 2 });
    });

    it("purges a thread together with its turns", () =>
      alone(async (store) => {
        for (const id of ["a", "b"]) await store.records.addTurn(turn(id, { threadId: id }));
        await store.records.addTurn(turn("c", { threadId: "c", nowIso: LATER }));
        expect(await store.records.purgeThreads(LATER, 3)).toBe(3);
        expect(await store.records.purgeThreads(LATER, 3)).toBe(1);
        expect(await store.records.purgeThreads(LATER, 3)).toBe(0);
        expect(await asked(store, { threadId: "c" })).toEqual(["c"]);
      }));

    it("purges unused threads, then images by their own age, and then their files", () =>
      alone(async (store) => {
        for (const token of ["old", "new"]) await store.records.addFile(file(token));
        await store.records.addTurn(turn("a", { images: ["old"] }));
        await store.records.addTurn(turn("b", { images: ["new"], nowIso: LATER }));
        await store.records.addTurn(turn("c", { threadId: "idle" }));
        expect(await store.records.unusedFiles(FAR, 10)).toEqual([]);
        expect(await store.records.purgeThreadImages(LATER, 10)).toBe(1);
        expect(await imagesOf(store)).toEqual(["new"]);
        expect(await store.records.unusedFiles(FAR, 10)).toEqual(["old"]);
        // Removes the idle thread and its turn; the thread in use stays whole.
        expect(await store.records.purgeThreads(LATER, 10)).toBe(2);
        expect(await asked(store, { threadId: "idle" })).toEqual([]);
        expect(await store.records.purgeThreads(LATER, 10)).toBe(0);
        expect(await asked(store)).toEqual(["a", "b"]);
        expect(await store.records.purgeThreads(FAR, 1)).toBe(1);
        expect(await asked(store)).toEqual(["b"]);
      }));
  });

  describe("a question with a later answer", () => {
    it("ends a question once, with its turn and its message", () =>
      alone(async (store) => {
        const [first, second] = [await leased(store, "first"), await leased(store, "second")];
        const ended = turn("a", { job: first, delivery: delivery("msg_first") });
        expect(await store.records.addTurn(ended)).toBe(true);
        expect(await store.records.addTurn({ ...ended, turn: undefined })).toBe(false);
        expect(await store.records.addTurn({ ...ended, messageId: newId() })).toBe(false);
        expect(await due(store)).toEqual(["msg_first"]);
        // A failed question leaves no turn, but its message.
        const failed = { turn: undefined, threadId: undefined, job: second };
        await store.records.addTurn(turn("b", { ...failed, delivery: delivery("msg_second") }));
        expect(await store.queue.figures("chat", undefined)).toMatchObject({ waiting: 0 });
        expect(await due(store)).toEqual(["msg_first", "msg_second"]);
        expect(await asked(store)).toEqual(["a"]);
      }));

    it("writes no turn and no message for a lease that was lost", () =>
      alone(async (store) => {
        const lost = await leased(store, "lost");
        await store.queue.resume("next", 1000, true);
        const { number } = lost;
        const next = await store.queue.lease({ number, worker: "next", nowMs: 1000 });
        expect(await store.records.addTurn(turn("late", { job: lost, delivery: delivery("msg") }))).toBe(
          false,
        );
        expect([await due(store), await asked(store)]).toEqual([[], []]);
        expect(next).toMatchObject({ number });
        expect(
          await store.records.addTurn(
            turn("once", { ...(next && { job: next }), delivery: delivery("msg") }),
          ),
        ).toBe(true);
        expect([await due(store), await asked(store)]).toEqual([["msg"], ["once"]]);
      }));

    it("does not count the uploads that a waiting question names as unused", () =>
      alone(async (store) => {
        await store.records.addFile(file("named"));
        await store.records.addQuestion(job("a", JSON.stringify({ url: "http://h/files/named/a.png" })));
        expect(await store.records.unusedFiles(FAR, 10)).toEqual([]);
      }));
  });
}
