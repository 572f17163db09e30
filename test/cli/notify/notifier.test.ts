import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { postNotice, runCommand } from "../../../src/cli/notify/channels.ts";
import { needsOf, type Notice } from "../../../src/cli/notify/needs.ts";
import { type Channel, startNotifier } from "../../../src/cli/notify/notifier.ts";
import type { DaemonStatus } from "../../../src/sync/daemon.ts";

type Source = DaemonStatus["sources"][number];
type Status = Pick<DaemonStatus, "service" | "sources">;

const source = (facts: Partial<Source>): Source =>
  ({ path: "/docs", halted: false, held: 0, failed: 0, unreadable: 0, holdReason: null, ...facts }) as Source;
const open = { kind: "open" } as DaemonStatus["service"];
const statusOf = (...sources: Source[]): Status => ({ service: open, sources });

it("names what waits for a person", () => {
  const refused = { kind: "key_refused", reason: "401" } as DaemonStatus["service"];
  const sources = [
    source({ path: "/a", halted: true, holdReason: "the folder is missing", held: 3 }),
    source({ path: "/b", held: 1, failed: 2, unreadable: 1 }),
    source({ path: "/c" }),
  ];
  expect(needsOf({ service: refused, sources }).map(({ text: words }) => words)).toEqual([
    "the service refuses the key: 401",
    "/a: halted, nothing is sent: the folder is missing",
    "/b: 1 delete held until you approve",
    "/b: 2 files failed",
    "/b: 1 path cannot be read",
  ]);
});

describe("a notifier", () => {
  let status: Status;
  let sent: [Channel["kind"], readonly string[]][];
  let warnings: string[];
  let failure: Error | undefined;
  beforeEach(() => {
    vi.useFakeTimers();
    [status, sent, warnings, failure] = [statusOf(source({})), [], [], undefined];
  });
  afterEach(() => void vi.useRealTimers());

  const start = (env = {}) =>
    startNotifier({
      status: () => status,
      log: { warn: (words: string) => void warnings.push(words) } as never,
      env,
      hostname: "host",
      checkMs: 1000,
      send: (channel, { needs }) => {
        sent.push([channel.kind, needs.map(({ key }) => key)]);
        return failure === undefined ? Promise.resolve() : Promise.reject(failure);
      },
    });

  it("reports a need once, when two checks have seen it, and again after it was over", async () => {
    const notifier = start();
    notifier.use({ url: "http://example.com/" });
    status = statusOf(source({ failed: 1 }));
    await vi.advanceTimersByTimeAsync(1000);
    expect(sent).toEqual([]);
    status = statusOf(source({ failed: 2, held: 5 }));
    await vi.advanceTimersByTimeAsync(10_000);
    expect(sent).toEqual([
      ["url", ["failed /docs"]],
      ["url", ["held /docs"]],
    ]);
    status = statusOf(source({}));
    await vi.advanceTimersByTimeAsync(1000);
    status = statusOf(source({ failed: 1 }));
    await vi.advanceTimersByTimeAsync(2000);
    expect(sent.slice(2)).toEqual([["url", ["failed /docs"]]]);
    notifier.stop();
    status = statusOf(source({ halted: true }));
    await vi.advanceTimersByTimeAsync(5000);
    expect(sent).toHaveLength(3);
  });

  it("uses every channel, and logs one that fails", async () => {
    const notifier = start();
    notifier.use({ command: ["alert"], url: "http://example.com/", desktop: true });
    failure = new Error("no bell");
    status = statusOf(source({ halted: true }));
    await vi.advanceTimersByTimeAsync(2000);
    expect(sent.map(([kind]) => kind)).toEqual(["command", "url", "desktop"]);
    expect(warnings).toEqual([
      "notify.command failed: no bell",
      "notify.url failed: no bell",
      "notify.desktop failed: no bell",
    ]);
    notifier.stop();
  });

  it.each([
    ["a unit of a user", { INVOCATION_ID: "1", DBUS_SESSION_BUS_ADDRESS: "unix:" }, {}, ["desktop"]],
    [
      "the same without notices",
      { INVOCATION_ID: "1", DBUS_SESSION_BUS_ADDRESS: "unix:" },
      { desktop: false },
      [],
    ],
    ["a terminal", { DBUS_SESSION_BUS_ADDRESS: "unix:" }, {}, []],
  ])("a notifier in %s", async (_name, env, config, kinds) => {
    const notifier = start(env);
    notifier.use(config);
    status = statusOf(source({ failed: 1 }));
    await vi.advanceTimersByTimeAsync(3000);
    expect(sent.map(([kind]) => kind)).toEqual(kinds);
    notifier.stop();
  });
});

describe("a channel", () => {
  const notice: Notice = { text: "kbsync needs you", host: "host", version: "1", needs: [] };
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "kbsync-notify-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it("a command gets the notice, without a shell", async () => {
    const file = join(folder, "out");
    const script = 'cat > "$0"; printf "%s" "$KBSYNC_TEXT $1" >> "$0"';
    await runCommand(["sh", "-c", script, file, "$(touch x)"], notice, { PATH: process.env["PATH"] });
    expect(readFileSync(file, "utf8")).toBe(`${JSON.stringify(notice)}kbsync needs you $(touch x)`);
  });

  it.each([
    ["fails", ["sh", "-c", "echo no bell >&2; exit 3"], /sh ended with 3: no bell/],
    ["is not there", ["/no/such/program"], /ENOENT/],
    ["reads nothing", ["false"], /false ended with 1/],
  ])("a command that %s is reported", async (_name, command, message) => {
    await expect(runCommand(command, notice, { PATH: process.env["PATH"] })).rejects.toThrow(message);
  });

  it("an address gets the notice as JSON, and anything but a 2xx is reported", async () => {
    const bodies: string[] = [];
    const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      bodies.push(await text(request));
      response.writeHead(request.url === "/no" ? 404 : 204).end();
    };
    const server = createServer((request, response) => void answer(request, response)).listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await postNotice(url, notice);
    expect(bodies).toEqual([JSON.stringify(notice)]);
    await expect(postNotice(`${url}/no`, notice)).rejects.toThrow(/answered with status 404/);
    server.close();
  });
});
