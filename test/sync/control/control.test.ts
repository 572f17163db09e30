import { once } from "node:events";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { KbsyncError } from "../../../src/lib/failure.ts";
import { askDaemon } from "../../../src/sync/control/client.ts";
import { handleWith } from "../../../src/sync/control/handle.ts";
import type { Daemon, DaemonActivity } from "../../../src/sync/daemon.ts";
import { openControl, type Control, type ControlHandler } from "../../../src/sync/control/server.ts";
import { until } from "../daemon/harness.ts";

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

const nothing: ControlHandler = () => Promise.resolve({ sources: ["/docs"] });

async function openAt(
  handle: ControlHandler = nothing,
  more: { stateDir?: string; env?: NodeJS.ProcessEnv; elsewhere?: string[] } = {},
): Promise<Control> {
  const opened = await openControl({
    stateDir: more.stateDir ?? base,
    version: "1.2.3",
    env: more.env ?? {},
    handle,
    onElsewhere: (path) => more.elsewhere?.push(path),
  });
  open.push(opened);
  return opened;
}

const never = new AbortController().signal;
const ask = (stateDir = base) => askDaemon(stateDir, { command: "rescan" }, { signal: never });

/** A client that says what it likes; gathers what it is told. */
async function raw(path: string): Promise<{ socket: Socket; lines: () => string[]; ended: () => boolean }> {
  const socket = connect(path);
  let text = "";
  let ended = false;
  socket.on("data", (bytes: Buffer) => (text += bytes.toString()));
  socket.on("close", () => (ended = true));
  socket.on("error", () => undefined);
  await once(socket, "connect");
  return { socket, lines: () => text.split("\n").filter((line) => line !== ""), ended: () => ended };
}

const codeIn = (line: string | undefined): unknown =>
  (JSON.parse(line ?? "{}") as { error?: { code: string } }).error?.code;

describe("the socket", () => {
  it("is its owner's alone, whatever the state folder's mode and the umask", async () => {
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

  it("is gone when it is closed, and nobody is there then", async () => {
    const opened = await openAt();
    await opened.close();
    expect(readdirSync(base)).toEqual([]);
    expect(await ask()).toBeUndefined();
  });

  it("takes the place of one that a killed daemon left", async () => {
    const killed = createServer().listen(join(base, "elsewhere"));
    await once(killed, "listening");
    // Under another name, closing it does not remove it: a socket is left at which nobody listens.
    renameSync(join(base, "elsewhere"), join(base, "control.sock"));
    killed.close();
    await once(killed, "close");
    expect(lstatSync(join(base, "control.sock")).isSocket()).toBe(true);
    expect(await ask()).toBeUndefined();
    await openAt();
    expect(await ask()).toEqual({ sources: ["/docs"] });
  });

  it("that nobody listens at is nobody", async () => {
    writeFileSync(join(base, "control.sock"), "no socket");
    expect(await ask()).toBeUndefined();
    await openAt();
    expect(await ask()).toEqual({ sources: ["/docs"] });
  });

  it("leaves the socket of the next daemon alone", async () => {
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

  it("has its socket outside, in a folder of its owner, and a note that leads there", async () => {
    const stateDir = long();
    const elsewhere: string[] = [];
    const opened = await openAt(nothing, { stateDir, env: { XDG_RUNTIME_DIR: base }, elsewhere });
    expect(elsewhere).toEqual([opened.path]);
    expect(opened.path.startsWith(`${base}/kbsync-`)).toBe(true);
    expect(lstatSync(opened.path).mode & 0o777).toBe(0o600);
    expect(lstatSync(dirname(opened.path)).mode & 0o777).toBe(0o700);
    expect(lstatSync(join(stateDir, "control.json")).mode & 0o777).toBe(0o600);
    expect(await ask(stateDir)).toEqual({ sources: ["/docs"] });
    await opened.close();
    expect(existsSync(dirname(opened.path))).toBe(false);
    expect(readdirSync(stateDir)).toEqual([]);
    expect(await ask(stateDir)).toBeUndefined();
  });

  it("takes the temporary folder where there is no folder for running programs", async () => {
    const stateDir = long();
    const opened = await openAt(nothing, { stateDir, env: { XDG_RUNTIME_DIR: join(base, "none") } });
    expect(opened.path.startsWith(`${tmpdir()}/kbsync-`)).toBe(true);
    expect(await ask(stateDir)).toEqual({ sources: ["/docs"] });
  });

  it("removes what a killed daemon left outside, and nothing that is not a daemon's", async () => {
    const stateDir = long();
    const left = mkdtempSync(join(base, "kbsync-"));
    writeFileSync(join(stateDir, "control.json"), JSON.stringify({ socket: join(left, "control.sock") }));
    const opened = await openAt(nothing, { stateDir, env: { XDG_RUNTIME_DIR: base } });
    expect(existsSync(left)).toBe(false);
    await opened.close();
    const foreign = mkdtempSync(join(base, "precious-"));
    writeFileSync(join(stateDir, "control.json"), JSON.stringify({ socket: join(foreign, "control.sock") }));
    await openAt(nothing, { stateDir, env: { XDG_RUNTIME_DIR: base } });
    expect(existsSync(foreign)).toBe(true);
  });
});

describe("a request", () => {
  it("gets its events and then its result", async () => {
    await openAt(async (request, { emit }) => {
      expect(request).toEqual({ command: "log", limit: 2, follow: false });
      const activity = { atMs: 1, source: "/docs", action: "create", outcome: "done", durationMs: 2 };
      emit({ ...activity, path: "a" });
      emit({ ...activity, path: "b\nc" });
      return Promise.resolve({});
    });
    const events: string[] = [];
    const result = await askDaemon(
      base,
      { command: "log", limit: 2, follow: false },
      { signal: never, onEvent: ({ path }) => events.push(path) },
    );
    expect(result).toEqual({});
    expect(events).toEqual(["a", "b\nc"]);
  });

  it("gets all of an answer that is larger than what may wait for its reader", async () => {
    const activity = { atMs: 1, source: "/docs", action: "create", outcome: "done", durationMs: 2 };
    await openAt(
      handleWith(
        {
          recent: () => Array.from({ length: 10_000 }, () => ({ ...activity, path: "p".repeat(1000) })),
        } as unknown as Daemon, // what `log` asks of it
        { version: "1.2.3", startedMs: 0 },
      ),
    );
    let count = 0;
    await askDaemon(
      base,
      { command: "log", limit: 10_000, follow: false },
      { signal: never, onEvent: () => (count += 1) },
    );
    expect(count).toBe(10_000);
  });

  it("that follows a log misses nothing that is done while what was before is told", async () => {
    const activity = { atMs: 1, source: "/docs", action: "create", outcome: "done", durationMs: 2 };
    let tell: ((activity: DaemonActivity) => void) | undefined;
    await openAt(
      handleWith(
        {
          recent: () => Array.from({ length: 5000 }, () => ({ ...activity, path: "p".repeat(1000) })),
          follow: (listener: (activity: DaemonActivity) => void) => {
            tell = listener;
            setImmediate(() => listener({ ...activity, path: "news" } as DaemonActivity));
            return () => undefined;
          },
        } as unknown as Daemon, // what `log` asks of it
        { version: "1.2.3", startedMs: 0 },
      ),
    );
    const paths: string[] = [];
    const leaving = new AbortController();
    const asked = askDaemon(
      base,
      { command: "log", limit: 5000, follow: true },
      { signal: leaving.signal, onEvent: ({ path }) => paths.push(path) },
    ).catch((error: unknown) => error);
    await until(() => paths.length === 5001);
    expect(paths.at(-1)).toBe("news");
    tell?.({ ...activity, path: "more" } as DaemonActivity);
    await until(() => paths.at(-1) === "more");
    leaving.abort(new Error("enough"));
    await asked;
  });

  it("that fails throws here what was thrown there", async () => {
    await openAt(() => {
      throw new KbsyncError("/x is no source", { code: "source_unknown", subject: "/x", hint: "try /docs" });
    });
    await expect(ask()).rejects.toMatchObject({
      name: "KbsyncError",
      message: "/x is no source",
      code: "source_unknown",
      subject: "/x",
      hint: "try /docs",
    });
  });

  it("that is taken back is cancelled there", async () => {
    let cancelled = false;
    let begun = false;
    await openAt(async (_request, { signal }) => {
      begun = true;
      await once(signal, "abort");
      cancelled = true;
      return {};
    });
    const leaving = new AbortController();
    const asked = askDaemon(base, { command: "rescan" }, { signal: leaving.signal });
    await until(() => begun);
    leaving.abort(new Error("never mind"));
    await expect(asked).rejects.toThrow("never mind");
    await until(() => cancelled);
  });

  it("is told that the daemon stops", async () => {
    let begun = false;
    const opened = await openAt(async (_request, { signal }) => {
      begun = true;
      await once(signal, "abort");
      return {};
    });
    const asked = ask();
    const ended = asked.catch((error: unknown) => error);
    await until(() => begun);
    await opened.close();
    expect(await ended).toMatchObject({ code: "daemon_stopping" });
  });

  it("of a client that is gone at that moment keeps no daemon from stopping", async () => {
    let begun = 0;
    const opened = await openAt(async (_request, { signal }) => {
      begun += 1;
      await once(signal, "abort");
      return {};
    });
    const clients = await Promise.all(Array.from({ length: 5 }, () => raw(opened.path)));
    for (const { socket } of clients) socket.write('{"command":"rescan"}\n');
    await until(() => begun === clients.length);
    // In one turn: the daemon has not heard of it when it tells them that it stops.
    for (const { socket } of clients) socket.destroy();
    await expect(opened.close()).resolves.toBeUndefined();
  });

  it("is told when the daemon dies without a word, and when it is of another version", async () => {
    const path = join(base, "control.sock");
    const dying = createServer((socket) => socket.destroy()).listen(path);
    await once(dying, "listening");
    await expect(ask()).rejects.toMatchObject({ code: "control_lost" });
    dying.close();
    await once(dying, "close");
    const hello = { hello: { protocol: 999, version: "9.9.9", pid: 1 } };
    const newer = createServer((socket) => socket.write(`${JSON.stringify(hello)}\n`)).listen(path);
    await once(newer, "listening");
    await expect(ask()).rejects.toMatchObject({
      code: "control_version",
      message: expect.stringContaining("9.9.9") as string,
    });
    newer.close();
  });
});

describe("a client that is none", () => {
  it.each([
    ["sends no JSON", "hello there\n", "control_request"],
    ["sends an unknown command", '{"command":"format"}\n', "control_request"],
    ["sends a field too many", '{"command":"rescan","force":true}\n', "control_request"],
    ["sends a number out of bounds", '{"command":"log","limit":1e9,"follow":false}\n', "control_request"],
    ["sends a path that is not absolute", '{"command":"about","path":"a.md"}\n', "control_request"],
    ["sends a path that no disk has", '{"command":"about","path":"/a\\u0000b"}\n', "control_request"],
    ["never ends its line", "x".repeat(70_000), "control_request"],
    ["sends bytes that are no text", "\u0000\u00ff\n", "control_request"],
  ])("%s is told so and let go", async (_name, text, code) => {
    const { path } = await openAt();
    const client = await raw(path);
    client.socket.write(text);
    await until(client.ended);
    expect(JSON.parse(client.lines()[0] ?? "")).toMatchObject({ hello: { protocol: 1, version: "1.2.3" } });
    expect(codeIn(client.lines()[1])).toBe(code);
    expect(await ask()).toEqual({ sources: ["/docs"] });
  });

  it("asks twice and is answered once", async () => {
    let count = 0;
    const { path } = await openAt(() => Promise.resolve({ sources: [String((count += 1))] }));
    const client = await raw(path);
    client.socket.write('{"command":"rescan"}\n{"command":"rescan"}\n');
    await until(client.ended);
    expect(client.lines()).toHaveLength(2);
    expect(count).toBe(1);
  });

  it("asks once more while the first is worked on, and is answered once", async () => {
    let count = 0;
    const { promise: release, resolve } = Promise.withResolvers<void>();
    const { path } = await openAt(async () => {
      const sources = [String((count += 1))];
      if (count === 1) await release;
      return { sources };
    });
    const client = await raw(path);
    client.socket.write('{"command":"rescan"}\n');
    await until(() => count === 1);
    client.socket.write('{"command":"rescan"}\n');
    // Another client's answer comes after what this one sent before.
    expect(await ask()).toEqual({ sources: ["2"] });
    resolve();
    await until(client.ended);
    expect([client.lines().length, count]).toEqual([2, 2]);
  });

  it("says nothing is let go after some seconds, and keeps nobody out", async () => {
    const { path } = await openAt();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const client = await raw(path);
    while (client.lines().length === 0) await new Promise(setImmediate);
    vi.advanceTimersByTime(5000);
    vi.useRealTimers();
    expect(await ask()).toEqual({ sources: ["/docs"] });
    await until(client.ended);
    expect(codeIn(client.lines()[1])).toBe("control_request");
  });

  it("is one too many: it is told so, and there is room again when others leave", async () => {
    const { path } = await openAt();
    const others = await Promise.all(Array.from({ length: 32 }, () => raw(path)));
    await until(() => others.every(({ lines }) => lines().length === 1));
    await expect(ask()).rejects.toMatchObject({ code: "control_busy" });
    for (const { socket } of others) socket.destroy();
    await until(() => others.every(({ ended }) => ended()));
    expect(await ask()).toEqual({ sources: ["/docs"] });
  });

  it("follows and never reads is let go", async () => {
    let over = false;
    const { path } = await openAt(async (_request, { signal, emit }) => {
      while (!signal.aborted) {
        emit("x".repeat(100_000));
        await new Promise((resolve) => {
          setImmediate(resolve);
        });
      }
      over = true;
      return {};
    });
    const client = await raw(path);
    client.socket.pause();
    client.socket.write('{"command":"log","limit":0,"follow":true}\n');
    await until(() => over);
    client.socket.destroy();
  });
});

it("a note that is half written leads nowhere, and does no harm", async () => {
  writeFileSync(join(base, "control.json"), '{"socket":');
  const opened = await openAt();
  expect(await ask()).toEqual({ sources: ["/docs"] });
  await opened.close();
  expect(readdirSync(base).filter((name) => name !== "control.json")).toEqual([]);
  expect(existsSync(join(base, "control.json")) ? readFileSync(join(base, "control.json"), "utf8") : "").toBe(
    "",
  );
});
