import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { DaemonActivity } from "../../../../src/wire/daemon-files.ts";
import { KbsyncError } from "../../../../src/lib/failure.ts";
import { isStopped } from "../../../../src/lib/process-alive.ts";
import { askDaemon } from "../../../../src/sync/daemon/control/client.ts";
import { type DaemonOperations, operationsOf } from "../../../../src/sync/daemon/control/operations.ts";
import type { Daemon } from "../../../../src/sync/daemon.ts";
import {
  openControl,
  type Control,
  type ControlOptions,
} from "../../../../src/sync/daemon/control/server.ts";
import { until } from "../harness.ts";
import { FIXED_PROGRAM } from "./program.ts";

let base: string;
let open: Control[];
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "kbsync-c-"));
  open = [];
});
afterEach(async () => {
  await Promise.all(open.map((each) => each.close()));
  rmSync(base, { recursive: true, force: true });
});

/** A daemon with only these operations. */
const operations = (some: Partial<DaemonOperations> = {}): DaemonOperations =>
  ({ pause: () => Promise.resolve({ sources: ["/docs"] }), ...some }) as DaemonOperations;

async function openAt(
  some: Partial<DaemonOperations> = {},
  more: Partial<ControlOptions> & { elsewhere?: string[] } = {},
): Promise<Control> {
  const { elsewhere, ...options } = more;
  const opened = await openControl({
    stateDir: base,
    version: "1.2.3",
    env: {},
    operations: operations(some),
    onSocketOutside: (path) => elsewhere?.push(path),
    ...options,
  });
  open.push(opened);
  return opened;
}

const never = new AbortController().signal;
const ask = (stateDir = base): Promise<unknown> =>
  askDaemon(stateDir, "pause", { paused: true }, { signal: never });

/** A client that sends arbitrary bytes and collects the answers. */
async function raw(path: string): Promise<{ socket: Socket; text: () => string; ended: () => boolean }> {
  const socket = connect(path);
  let text = "";
  let ended = false;
  socket.on("data", (bytes: Buffer) => (text += bytes.toString()));
  socket.on("close", () => (ended = true));
  socket.on("error", () => undefined);
  await once(socket, "connect");
  return { socket, text: () => text, ended: () => ended };
}

/** A request as a foreign client writes it. */
const http = (line: string, body?: string): string =>
  body === undefined
    ? `${line} HTTP/1.1\r\nhost: daemon\r\n\r\n`
    : `${line} HTTP/1.1\r\nhost: daemon\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
const PAUSE = http("POST /v1/daemon/pause", "{}");

/** Status and body of the last answer that a raw client got. */
function answerIn(text: string): { status: number; body: unknown } {
  const last = text.slice(text.lastIndexOf("HTTP/1.1 "));
  const [head = "", body = ""] = last.split("\r\n\r\n");
  return { status: Number(head.split(" ")[1]), body: body === "" ? undefined : JSON.parse(body) };
}

describe("the socket", () => {
  it("restricts the socket to its owner, whatever the state folder's mode and the umask", async () => {
    const before = process.umask(0);
    try {
      await openAt();
    } finally {
      process.umask(before);
    }
    expect(lstatSync(join(base, "control.sock")).mode & 0o777).toBe(0o600);
    expect(readdirSync(base)).toEqual(["control.sock"]);
    expect(await ask()).toEqual({ sources: ["/docs"] });
  });

  it("removes the socket at close, after which no daemon answers", async () => {
    const opened = await openAt();
    await opened.close();
    expect(readdirSync(base)).toEqual([]);
    expect(await ask()).toBeUndefined();
  });

  it("replaces the socket of a killed daemon", async () => {
    const killed = createServer().listen(join(base, "elsewhere"));
    await once(killed, "listening");
    // Closing it under another name does not remove it: a socket without a listener remains.
    renameSync(join(base, "elsewhere"), join(base, "control.sock"));
    killed.close();
    await once(killed, "close");
    expect(lstatSync(join(base, "control.sock")).isSocket()).toBe(true);
    expect(await ask()).toBeUndefined();
    await openAt();
    expect(await ask()).toEqual({ sources: ["/docs"] });
  });

  it("reports no daemon at a socket without a listener", async () => {
    writeFileSync(join(base, "control.sock"), "no socket");
    expect(await ask()).toBeUndefined();
    await openAt();
    expect(await ask()).toEqual({ sources: ["/docs"] });
  });

  it("keeps the socket of the next daemon", async () => {
    const first = await openAt();
    await openAt();
    await first.close();
    expect(await ask()).toEqual({ sources: ["/docs"] });
  });
});

describe("a state folder whose path is too long for a socket", () => {
  const long = (): string => {
    const path = join(base, "a".repeat(60), "b".repeat(60));
    mkdirSync(path, { recursive: true });
    return path;
  };

  it("creates the socket of a long state folder in a private folder outside, with a note that names it", async () => {
    const stateDir = long();
    const elsewhere: string[] = [];
    const opened = await openAt({}, { stateDir, env: { XDG_RUNTIME_DIR: base }, elsewhere });
    expect(elsewhere).toEqual([opened.path]);
    expect(opened.path.startsWith(`${base}/kbsync-`)).toBe(true);
    expect(lstatSync(opened.path).mode & 0o777).toBe(0o600);
    expect(lstatSync(dirname(opened.path)).mode & 0o777).toBe(0o700);
    expect(lstatSync(join(stateDir, "control.path")).mode & 0o777).toBe(0o600);
    expect(await ask(stateDir)).toEqual({ sources: ["/docs"] });
    await opened.close();
    expect(existsSync(dirname(opened.path))).toBe(false);
    expect(readdirSync(stateDir)).toEqual([]);
    expect(await ask(stateDir)).toBeUndefined();
  });

  it("uses the temporary folder without a runtime folder", async () => {
    const stateDir = long();
    const opened = await openAt({}, { stateDir, env: { XDG_RUNTIME_DIR: join(base, "none") } });
    expect(opened.path.startsWith(`${tmpdir()}/kbsync-`)).toBe(true);
    expect(await ask(stateDir)).toEqual({ sources: ["/docs"] });
  });
});

describe("a request", () => {
  const activity = { atMs: 1, source: "/docs", action: "create", outcome: "done", durationMs: 2 } as const;

  it("sends the lines of an answer and then the answer", async () => {
    const end = {
      end: "searchable",
      troubled: 0,
      reasons: [],
      reading: 0,
      readingPaths: [],
      embedding: 0,
      service: { kind: "open" },
    } as const;
    await openAt({
      wait: async (request, { emit }) => {
        expect(request).toEqual({ path: "/docs/a b&c\nd", timeoutSeconds: 2.5 });
        emit({ waiting: 2 });
        emit({ waiting: 1 });
        return Promise.resolve(end);
      },
    });
    const lines: unknown[] = [];
    const answer = await askDaemon(
      base,
      "wait",
      { path: "/docs/a b&c\nd", timeoutSeconds: 2.5 },
      { signal: never, onLine: (line) => lines.push(line) },
    );
    expect(answer).toEqual(end);
    expect(lines).toEqual([{ waiting: 2 }, { waiting: 1 }]);
  });

  it("sends all of an answer that is larger than the buffer for unread lines", async () => {
    const activities = Array.from({ length: 10_000 }, () => ({ ...activity, path: "p".repeat(1000) }));
    await openAt({ log: () => Promise.resolve({ activities }) });
    const answer = await askDaemon(base, "log", { limit: 10_000 }, { signal: never });
    expect(answer?.activities).toHaveLength(10_000);
  });

  it("loses no activity for a client that follows the log while it gets the earlier ones", async () => {
    let report: ((activity: DaemonActivity) => void) | undefined;
    const daemon = {
      recent: () => Array.from({ length: 5000 }, () => ({ ...activity, path: "p".repeat(1000) })),
      follow: (listener: (activity: DaemonActivity) => void) => {
        report = listener;
        setImmediate(() => listener({ ...activity, path: "news" }));
        return () => undefined;
      },
    };
    // The request that `kbsync log --follow` makes.
    await openAt(
      operationsOf(daemon as unknown as Daemon, { version: "1.2.3", startedMs: 0 }, FIXED_PROGRAM),
    );
    const paths: string[] = [];
    const leaving = new AbortController();
    const asked = askDaemon(
      base,
      "log",
      { limit: 5000, follow: "true" },
      { signal: leaving.signal, onLine: ({ path }) => paths.push(path) },
    ).catch((error: unknown) => error);
    await until(() => paths.length === 5001);
    expect(paths.at(-1)).toBe("news");
    report?.({ ...activity, path: "more" });
    await until(() => paths.at(-1) === "more");
    leaving.abort(new Error("enough"));
    await asked;
  });

  it("sends the head of an answer to a client that follows a quiet log", async () => {
    const daemon = { recent: () => [], follow: () => () => undefined };
    const { path } = await openAt(
      operationsOf(daemon as unknown as Daemon, { version: "1.2.3", startedMs: 0 }, FIXED_PROGRAM),
    );
    const client = await raw(path);
    client.socket.write(http("GET /v1/daemon/log?follow=true"));
    await until(() => client.text().includes("content-type: application/x-ndjson"));
    client.socket.destroy();
  });

  it("throws at the client the error of the daemon", async () => {
    await openAt({
      pause: () => {
        throw new KbsyncError("/x is no source", {
          code: "source_unknown",
          subject: "/x",
          hint: "try /docs",
          retryable: true,
        });
      },
    });
    await expect(ask()).rejects.toMatchObject({
      name: "KbsyncError",
      message: "/x is no source",
      code: "source_unknown",
      subject: "/x",
      hint: "try /docs",
      retryable: true,
    });
  });

  it("throws at the client the error of the daemon after the first line", async () => {
    await openAt({
      wait: (_request, { emit }) => {
        emit({ waiting: 1 });
        throw new KbsyncError("too much at once", { code: "control_slow", retryable: true });
      },
    });
    await expect(askDaemon(base, "wait", {}, { signal: never })).rejects.toMatchObject({
      message: "too much at once",
      code: "control_slow",
      retryable: true,
    });
  });

  it("cancels a request at the daemon when the client cancels it", async () => {
    let cancelled = false;
    let started = false;
    await openAt({
      pause: async (_request, { signal }) => {
        started = true;
        await once(signal, "abort");
        cancelled = true;
        return { sources: [] };
      },
    });
    const leaving = new AbortController();
    const asked = askDaemon(base, "pause", { paused: true }, { signal: leaving.signal });
    await until(() => started);
    leaving.abort(new Error("never mind"));
    await expect(asked).rejects.toThrow("never mind");
    await until(() => cancelled);
  });

  it.each(["pause", "wait"] as const)("answers that the daemon stops: %s", async (name) => {
    let started = false;
    const opened = await openAt({
      pause: async (_request, { signal }) => {
        started = true;
        await once(signal, "abort");
        return { sources: [] };
      },
      wait: async (_request, { signal, begin }) => {
        begin();
        started = true;
        await once(signal, "abort");
        throw new Error("broken off");
      },
    });
    const ended = askDaemon(base, name, {}, { signal: never }).catch((error: unknown) => error);
    await until(() => started);
    await opened.close();
    expect(await ended).toMatchObject({ code: "daemon_stopping" });
  });

  it("stops in spite of a client that disconnects at that moment", async () => {
    let started = 0;
    const opened = await openAt({
      pause: async (_request, { signal }) => {
        started += 1;
        await once(signal, "abort");
        return { sources: [] };
      },
    });
    const clients = await Promise.all(Array.from({ length: 5 }, () => raw(opened.path)));
    for (const { socket } of clients) socket.write(PAUSE);
    await until(() => started === clients.length);
    // In one turn: the daemon does not know yet that they disconnected when it answers that it stops.
    for (const { socket } of clients) socket.destroy();
    await expect(opened.close()).resolves.toBeUndefined();
  });

  it("throws control_lost when the daemon dies without an answer", async () => {
    const dying = createServer((socket) => socket.destroy()).listen(join(base, "control.sock"));
    await once(dying, "listening");
    await expect(ask()).rejects.toMatchObject({ code: "control_lost" });
    dying.close();
  });

  /** Lets time pass in which the clients and the daemon of this process run. */
  const pass = async (ms: number): Promise<void> => {
    for (let passedMs = 0; passedMs < ms; passedMs += 500) {
      vi.advanceTimersByTime(500);
      for (let turns = 0; turns < 20; turns += 1) await new Promise(setImmediate);
    }
  };
  const useFakeTimers = (): unknown =>
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });

  /** A process that says `text` to each client, and then nothing. */
  const silentAfter = async (text: string, run: () => Promise<void>): Promise<void> => {
    const clients: Socket[] = [];
    const silent = createServer((socket) => {
      clients.push(socket);
      socket.on("data", () => socket.write(text, () => (said += 1)));
    });
    await once(silent.listen(join(base, "control.sock")), "listening");
    try {
      await run();
    } finally {
      for (const socket of clients) socket.destroy();
      silent.close();
    }
  };
  let said = 0;
  /** Returns how a request ended within a time after the process fell silent; undefined: it has not. */
  const endWithin = async (ms: number): Promise<unknown> => {
    let end: unknown;
    const saidBefore = said;
    useFakeTimers();
    try {
      askDaemon(base, "wait", {}, { signal: leaving.signal }).catch((error: unknown) => (end = error));
      const isSilent = (): boolean => said > saidBefore;
      while (!isSilent()) await new Promise(setImmediate);
      await pass(ms);
      return end;
    } finally {
      vi.useRealTimers();
    }
  };
  let leaving = new AbortController();
  beforeEach(() => {
    leaving = new AbortController();
  });
  afterEach(() => leaving.abort(new Error("enough")));

  it("gives up a request that a process does not accept within two seconds", async () => {
    await silentAfter("", async () => {
      expect(await endWithin(2000)).toMatchObject({ code: "control_silent", retryable: true });
    });
  });

  const PROCESSING = "HTTP/1.1 102 Processing\r\n\r\n";
  const LINE = `HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\nd\r\n{"waiting":3}\r\n`;

  it.each([
    ["accepting a request", PROCESSING],
    ["a line of an answer", LINE],
  ])(
    "gives up a process that hangs for some seconds after %s, and one that is stopped sooner",
    async (_, text) => {
      await silentAfter(text, async () => {
        expect(await endWithin(5000)).toBeUndefined();
        expect(await endWithin(30_000)).toMatchObject({ code: "control_silent" });
      });
      const stopped = spawn("sleep", ["60"]);
      try {
        stopped.kill("SIGSTOP");
        await until(() => isStopped(stopped.pid ?? 0));
        writeFileSync(join(base, "daemon.pid"), `${stopped.pid}\n`);
        await silentAfter(text, async () => {
          expect(await endWithin(5000)).toMatchObject({
            code: "control_silent",
            message: `the daemon (process ${stopped.pid}) does not answer`,
          });
        });
      } finally {
        stopped.kill("SIGKILL");
      }
    },
  );

  it.each(["pause", "wait"] as const)(
    "waits for a daemon that lives, however long it takes: %s",
    async (name) => {
      const { promise: release, resolve } = Promise.withResolvers<void>();
      const started = Promise.withResolvers<void>();
      const answer = async (begin?: () => void): Promise<never> => {
        begin?.();
        started.resolve();
        await release;
        throw new KbsyncError("late", { code: "late" });
      };
      await openAt({ pause: async () => answer(), wait: async (_request, { begin }) => answer(begin) });
      useFakeTimers();
      try {
        const asked = askDaemon(base, name, {}, { signal: never }).catch((error: unknown) => error);
        await started.promise;
        await pass(60_000);
        resolve();
        expect(await asked).toMatchObject({ code: "late" });
      } finally {
        vi.useRealTimers();
      }
    },
  );
});

it("changes nothing for a client that gave up before the daemon took its request", async () => {
  const paused: string[] = [];
  const pause = async (): Promise<{ sources: string[] }> => {
    paused.push("paused");
    return { sources: [] };
  };
  const { path } = await openAt({ pause });
  // The framework is loaded.
  expect(await ask()).toEqual({ sources: [] });
  const { socket } = await raw(path);
  socket.write(PAUSE, () => socket.destroy());
  await once(socket, "close");
  expect(await ask()).toEqual({ sources: [] });
  expect(paused).toHaveLength(2);
});

describe("a daemon of another version", () => {
  /** A server at the socket that gives each connection this answer. */
  const answering = async (text: string): Promise<Server> => {
    const server = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", () => socket.write(text));
    }).listen(join(base, "control.sock"));
    await once(server, "listening");
    return server;
  };
  const answer = (status: string, body: object): string => {
    const text = JSON.stringify(body);
    return `HTTP/1.1 ${status}\r\nserver: kbsync/9.9.9\r\ncontent-length: ${text.length}\r\nconnection: close\r\n\r\n${text}`;
  };
  const unknown = { success: false, message: "?", error: { code: "route_not_found", retryable: false } };

  it.each([
    ["that does not know the operation", answer("404 Not Found", unknown)],
    ["that answers in another way", answer("200 OK", { folders: [] })],
    ["that answers with no JSON", answer("200 OK", {}).slice(0, -1) + "x"],
  ])("names a daemon of another version, with the remedy: %s", async (_what, text) => {
    const server = await answering(text);
    await expect(ask()).rejects.toMatchObject({
      code: "control_version",
      message: expect.stringContaining("kbsync 9.9.9") as string,
      hint: expect.stringContaining("Restart the daemon") as string,
    });
    server.close();
  });

  it("distinguishes a daemon without HTTP from one that is lost", async () => {
    const server = await answering('{"hello":{"protocol":1,"version":"0.1.0","pid":1}}\n');
    await expect(ask()).rejects.toMatchObject({ code: "control_version" });
    server.close();
  });
});

describe("a client that is none", () => {
  const invalid = { error: { code: "invalid_field" } };
  it.each([
    [
      "an unknown operation",
      http("POST /v1/daemon/format", "{}"),
      404,
      { error: { code: "route_not_found" } },
    ],
    ["another method", http("GET /v1/daemon/pause"), 404, { error: { code: "route_not_found" } }],
    [
      "a body that is no JSON",
      http("POST /v1/daemon/pause", "hello"),
      400,
      { error: { code: "invalid_body" } },
    ],
    ["a field too many", http("POST /v1/daemon/pause", '{"force":true}'), 400, invalid],
    ["a number out of bounds", http("GET /v1/daemon/log?limit=1e9"), 400, invalid],
    [
      "a time beyond all dates",
      http("POST /v1/daemon/undelete", '{"path":"/docs/a.md","atMs":1e300}'),
      400,
      invalid,
    ],
    ["a path that is not absolute", http("GET /v1/daemon/why?path=a.md"), 400, invalid],
    ["a path that no disk has", http("GET /v1/daemon/why?path=%2Fa%00b"), 400, invalid],
    ["two paths", http("GET /v1/daemon/why?path=/a&path=/b"), 400, invalid],
    [
      "a body that is too long",
      http("POST /v1/daemon/pause", `"${"x".repeat(70_000)}"`),
      413,
      {
        error: { code: "body_too_large" },
      },
    ],
  ])(
    "refuses a client that sends %s, in the shape of the service's failures",
    async (_name, text, status, body) => {
      const { path } = await openAt();
      const client = await raw(path);
      client.socket.write(text);
      await until(() => client.text().endsWith("}}"));
      expect(answerIn(client.text())).toMatchObject({ status, body: { success: false, ...body } });
      client.socket.destroy();
      expect(await ask()).toEqual({ sources: ["/docs"] });
    },
  );

  it.each([
    ["bytes that are no HTTP", "\u0000\u00ff\n"],
    ["a head that never ends", `GET / HTTP/1.1\r\nx: ${"x".repeat(70_000)}`],
  ])("disconnects a client that sends %s", async (_name, text) => {
    const { path } = await openAt();
    const client = await raw(path);
    client.socket.write(text);
    await until(client.ended);
    expect(await ask()).toEqual({ sources: ["/docs"] });
  });

  it("disconnects a silent client after some seconds, without blocking others", async () => {
    const { path } = await openAt({}, { requestMs: 200 });
    const client = await raw(path);
    expect(await ask()).toEqual({ sources: ["/docs"] });
    await until(client.ended);
    expect(client.text()).toContain("408");
  });

  it("disconnects one client too many, and accepts others when some have left", async () => {
    const { path } = await openAt();
    const others = await Promise.all(Array.from({ length: 64 }, () => raw(path)));
    await expect(ask()).rejects.toMatchObject({ code: "control_lost", retryable: true });
    for (const { socket } of others) socket.destroy();
    await until(() => others.every(({ ended }) => ended()));
    expect(await ask()).toEqual({ sources: ["/docs"] });
  });

  it("disconnects a client that follows and never reads", async () => {
    let over = false;
    const { path } = await openAt({
      wait: async (_request, { signal, emit }) => {
        while (!signal.aborted) {
          emit({ waiting: 1, service: { kind: "key_refused", untilMs: 1, reason: "x".repeat(100_000) } });
          await new Promise((resolve) => {
            setImmediate(resolve);
          });
        }
        over = true;
        throw new Error("nobody is there");
      },
    });
    const client = await raw(path);
    client.socket.pause();
    client.socket.write(http("GET /v1/daemon/wait"));
    await until(() => over);
    client.socket.destroy();
  });
});

it("accepts requests without a body for an operation on everything", async () => {
  const { path } = await openAt();
  const client = await raw(path);
  client.socket.write(http("POST /v1/daemon/pause"));
  await until(() => client.text().endsWith("}"));
  expect(answerIn(client.text())).toEqual({ status: 200, body: { sources: ["/docs"] } });
  expect(client.text()).toMatch(/server: kbsync\/1\.2\.3/i);
  client.socket.destroy();
});
