import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openDatabase, type Database } from "../../../../../src/kb/store/postgres/database/database.ts";
import { openNotices, type DatabaseNotices } from "../../../../../src/kb/store/postgres/notices/notices.ts";
import { isSkipped, newDatabase, query } from "../databases.ts";

interface Process {
  readonly notices: DatabaseNotices;
  readonly received: string[];
  readonly missed: ReturnType<typeof vi.fn<() => void>>;
}

describe.skipIf(isSkipped())("announcements between processes", () => {
  let url: string;
  let database: Database;
  let opened: Process[];
  beforeEach(async () => {
    url = await newDatabase();
    database = openDatabase(url);
    opened = [];
  });
  afterEach(async () => {
    await Promise.all(opened.map(({ notices }) => notices.close()));
    await database.close();
  });

  const open = (listenAt = url): Process => {
    const notices = openNotices(listenAt, database);
    const received: string[] = [];
    const missed = vi.fn<() => void>();
    notices.listen({ onNotice: (topic, key) => received.push(`${topic} ${key}`), onMissed: missed });
    const process = { notices, received, missed };
    opened.push(process);
    return process;
  };
  /** Resolves when the first message of a process has come back: from then on it receives those of the others. */
  const live = async (process: Process): Promise<void> => {
    await vi.waitFor(() => expect(process.missed).toHaveBeenCalled());
    process.missed.mockClear();
  };

  it("announcements arrive at the other processes within a second, and not at the process that sent them", async () => {
    const [one, two, three] = [open(), open(), open()];
    await Promise.all([one, two, three].map(live));
    one.notices.announce("ingest", "a");
    one.notices.announce("ingest", "a");
    two.notices.announce("ended", "a/b");
    await vi.waitFor(() => expect(three.received.toSorted()).toEqual(["ended a/b", "ingest a"]), 1000);
    await vi.waitFor(() => expect(one.received).toEqual(["ended a/b"]), 1000);
    expect(two.received).toEqual(["ingest a"]);
  });

  it("announcements between processes are sent together, and all of them before a process ends", async () => {
    const [one, two] = [open(), open()];
    await Promise.all([one, two].map(live));
    const sent = vi.spyOn(database, "run");
    const keys = Array.from({ length: 500 }, (_, at) => `${at}`.padStart(30, "0"));
    for (const key of keys) one.notices.announce("change", key);
    await one.notices.close();
    expect(sent.mock.calls.length).toBeLessThan(5);
    await vi.waitFor(() => expect(two.received).toEqual(keys.map((key) => `change ${key}`)), 1000);
  });

  it("announcements between processes become a check of everything if there are too many to name", async () => {
    const [one, two] = [open(), open()];
    await Promise.all([one, two].map(live));
    for (let at = 0; at < 5000; at += 1) one.notices.announce("change", `${at}`);
    await vi.waitFor(() => expect(two.missed).toHaveBeenCalled(), 1000);
    expect(two.received).toEqual([]);
  });

  it("announcements between processes arrive again after a lost connection, and what was missed is checked", async () => {
    const [one, two] = [open(), open()];
    await Promise.all([one, two].map(live));
    const listeners = "SELECT pid FROM pg_stat_activity WHERE application_name = 'kbsync listener'";
    await query(
      url,
      `SELECT pg_terminate_backend(pid) FROM (${listeners} AND datname = current_database()) AS ended`,
    );
    await vi.waitFor(() => expect(two.missed).toHaveBeenCalled(), 5000);
    await vi.waitFor(() => {
      one.notices.announce("chat", "a");
      expect(two.received).toContain("chat a");
    }, 10_000);
  });

  it("announcements between processes are replaced by checks of everything where no message arrives", async () => {
    const deaf = open("postgres://postgres@127.0.0.1:1/none");
    await vi.waitFor(() => expect(deaf.missed.mock.calls.length).toBeGreaterThan(2), 5000);
  });
});
