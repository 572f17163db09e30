import { describe, expect, it } from "vitest";
import type { DaemonActivity } from "../../../../src/wire/daemon-files.ts";
import type { DaemonOperation, RequestOf } from "../../../../src/wire/daemon.ts";
import { type OperationContext, operationsOf } from "../../../../src/sync/daemon/control/operations.ts";
import type { Daemon } from "../../../../src/sync/daemon.ts";
import { FIXED_PROGRAM } from "./program.ts";

const SERVICE = { kind: "open" };

/** Sends a request to a daemon with only these methods. */
async function ask<N extends DaemonOperation>(
  daemon: Record<string, unknown>,
  name: N,
  request: RequestOf<N>,
  { signal = new AbortController().signal, drained = async () => {} }: Partial<OperationContext<never>> = {},
): Promise<{ readonly result: unknown; readonly events: unknown[] }> {
  const events: unknown[] = [];
  const operations = operationsOf(
    { status: () => ({ service: SERVICE }), ...daemon } as unknown as Daemon,
    {
      version: "1.2.3",
      startedMs: 5,
    },
    FIXED_PROGRAM,
  );
  const emit = (event: unknown): void => void events.push(event);
  const result = await operations[name](request, { signal, begin: () => undefined, emit, drained });
  return { result, events };
}

it.each([true, false])("repairs what verify finds only with --repair: %s", async (repair) => {
  let options: Record<string, unknown> = {};
  const audit = async (given: Record<string, unknown>): Promise<unknown> => {
    options = given;
    return await Promise.resolve({ agrees: true, sources: ["s"], findings: ["f"] });
  };
  const { result } = await ask({ audit }, "verify", { folder: "/d", repair });
  expect(result).toEqual({ agrees: true, sources: ["s"], findings: ["f"] });
  expect(options).toMatchObject({ folder: "/d", repair });
});

describe("the log", () => {
  const activity = (path: string, more: Partial<DaemonActivity> = {}): DaemonActivity =>
    ({ atMs: 1, source: "/docs", path, ...more }) as DaemonActivity;
  /** The given activities that a follower of `path` gets, after it has read all earlier ones. */
  const followed = async (path: string | undefined, ...done: DaemonActivity[]): Promise<unknown[]> => {
    const leaving = new AbortController();
    let stopped = 0;
    const follow = (listener: (each: DaemonActivity) => void): (() => void) => {
      setImmediate(() => {
        for (const each of done) listener(each);
        leaving.abort(new Error("enough"));
      });
      return () => (stopped += 1);
    };
    const operations = operationsOf(
      { recent: () => [activity("old")], follow } as unknown as Daemon,
      {
        version: "1.2.3",
        startedMs: 5,
      },
      FIXED_PROGRAM,
    );
    const paths: string[] = [];
    const following = operations.log(
      { limit: 10, follow: "true", ...(path !== undefined && { path }) },
      {
        signal: leaving.signal,
        begin: () => undefined,
        emit: (each) => paths.push(each.path),
        drained: async () => {},
      },
    );
    await expect(following).rejects.toThrow("enough");
    expect(stopped).toBe(1);
    expect(paths.shift()).toBe("old");
    return paths;
  };

  it("returns the latest activities as the log", async () => {
    const asked: unknown[] = [];
    const recent = (options: unknown): DaemonActivity[] => {
      asked.push(options);
      return [activity("a"), activity("b")];
    };
    const { result } = await ask({ recent }, "log", { limit: 7, path: "/docs/a" });
    expect(asked).toEqual([{ limit: 7, path: "/docs/a" }]);
    expect(result).toEqual({ activities: [activity("a"), activity("b")] });
  });

  it("sends later activities to a follower of the log", async () => {
    expect(await followed(undefined, activity("a"), activity("b"))).toEqual(["a", "b"]);
  });

  it.each<[string, string | undefined, string[]]>([
    ["of a folder shows what is below it, and what left it", "/docs/d", ["d/a", "d", "moved"]],
    ["of a file shows that file", "/docs/d/a", ["d/a", "moved"]],
    ["of a source shows all of it", "/docs", ["d/a", "d", "d2", "moved"]],
    ["of another source shows nothing of it", "/other", []],
  ])("the followed log %s", async (_what, path, expected) => {
    const moved = activity("moved", { from: "d/a" });
    expect(await followed(path, activity("d/a"), activity("d"), activity("d2"), moved)).toEqual(expected);
  });

  it("ends a followed log when its client disconnects", async () => {
    const leaving = new AbortController();
    const drained = async (): Promise<void> => {
      leaving.abort(new Error("gone"));
      await Promise.resolve();
    };
    const asked = ask(
      { recent: () => [activity("a"), activity("b")], follow: () => () => undefined },
      "log",
      { limit: 10, follow: "true" },
      { signal: leaving.signal, drained },
    );
    await expect(asked).rejects.toThrow("gone");
  });
});

describe("a wait", () => {
  const end = { agreed: true, troubled: 0, reasons: [], reading: 0, readingPaths: [], unknown: undefined };

  it.each([
    [
      "searchable",
      end,
      {
        end: "searchable",
        troubled: 0,
        reasons: [],
        reading: 0,
        readingPaths: [],
        embedding: 0,
        service: SERVICE,
      },
    ],
    [
      "troubled",
      { ...end, agreed: false, troubled: 2, reasons: ["too odd"] },
      {
        end: "troubled",
        troubled: 2,
        reasons: ["too odd"],
        reading: 0,
        readingPaths: [],
        embedding: 0,
        service: SERVICE,
      },
    ],
    [
      "unknown",
      { ...end, unknown: true },
      {
        end: "searchable",
        troubled: 0,
        reasons: [],
        reading: 0,
        readingPaths: [],
        embedding: 0,
        service: SERVICE,
        unknown: true,
      },
    ],
  ])("returns the end of a wait: %s", async (_what, ended, expected) => {
    const wait = async ({ onWaiting }: { onWaiting: (files: number) => void }): Promise<unknown> => {
      onWaiting(3);
      return await Promise.resolve(ended);
    };
    const { result, events } = await ask({ wait }, "wait", { path: "/docs/a" });
    expect(result).toEqual(expected);
    expect(events).toEqual([{ waiting: 3 }]);
  });

  const forever = async ({
    onWaiting,
    signal,
  }: {
    onWaiting: (files: number) => void;
    signal: AbortSignal;
  }) => {
    onWaiting(3);
    return await new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason as Error));
    });
  };

  it("returns the number of files still waited for at the timeout", async () => {
    const { result } = await ask({ wait: forever }, "wait", { timeoutSeconds: 0.01 });
    expect(result).toEqual({
      end: "timeout",
      troubled: 3,
      reasons: [],
      reading: 0,
      readingPaths: [],
      embedding: 0,
      service: SERVICE,
    });
  });

  it("does not take a client that disconnects for a timeout", async () => {
    const leaving = new AbortController();
    const asked = ask({ wait: forever }, "wait", { timeoutSeconds: 1000 }, { signal: leaving.signal });
    leaving.abort(new Error("gone"));
    await expect(asked).rejects.toThrow("gone");
  });

  it("returns the error of a failed wait", async () => {
    const wait = async (): Promise<never> => await Promise.reject(new Error("outside"));
    await expect(ask({ wait }, "wait", {})).rejects.toThrow("outside");
  });
});
