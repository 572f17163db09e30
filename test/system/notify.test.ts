import { afterEach, describe, expect, it } from "vitest";
import { KbsyncError } from "../../src/lib/failure.ts";
import { openDatagrams, type SendDatagram } from "../../src/system/datagram.ts";
import { type Notifier, openNotifier, watchdogMs } from "../../src/system/notify.ts";
import { type NotifySocket, openNotifySocket } from "./socket.ts";

let silences: string[] = [];
let problems: unknown[] = [];
let socket: NotifySocket | undefined;
afterEach(() => {
  silences = [];
  problems = [];
  socket?.close();
  socket = undefined;
});

function notifierOf(env: Record<string, string>, open?: () => SendDatagram): Notifier {
  return openNotifier({
    env,
    pid: process.pid,
    monotonicUs: () => 1_234_567n,
    onSilent: (reason) => silences.push(reason),
    onProblem: (error) => problems.push(error),
    ...(open && { open }),
  });
}

describe("what a service manager receives", () => {
  it.each(["path", "abstract"] as const)(
    "a service manager receives messages over a socket with a name that is: %s",
    (kind) => {
      socket = openNotifySocket(kind);
      const notifier = notifierOf({ NOTIFY_SOCKET: socket.address });
      notifier.status("1,204 files searchable, 3 waiting");
      notifier.ready();
      notifier.alive();
      notifier.reloading();
      notifier.extend(1500);
      notifier.stopping();
      expect(socket.take()).toEqual([
        "STATUS=1,204 files searchable, 3 waiting",
        "READY=1",
        "WATCHDOG=1",
        "RELOADING=1\nMONOTONIC_USEC=1234567",
        "EXTEND_TIMEOUT_USEC=1500000",
        "STOPPING=1",
      ]);
      expect(silences).toEqual([]);
    },
  );

  it("what a service manager receives is a status once, and never more than one assignment", () => {
    socket = openNotifySocket();
    const notifier = notifierOf({ NOTIFY_SOCKET: socket.address });
    notifier.status("a file named\nREADY=1");
    notifier.status("a file named\nREADY=1");
    notifier.status("x".repeat(10_000));
    const [first, second, ...rest] = socket.take();
    expect(first).toBe("STATUS=a file named READY=1");
    expect(second?.length).toBeLessThan(500);
    expect(rest).toEqual([]);
  });

  it("keeps its order when the manager's queue is full for a while", () => {
    const received: string[] = [];
    let isFull = true;
    const notifier = notifierOf({ NOTIFY_SOCKET: "/run/x" }, () => (_address, text) => {
      if (!isFull) received.push(text);
      return !isFull;
    });
    notifier.reloading();
    notifier.ready();
    notifier.alive();
    notifier.status("reading");
    expect(received).toEqual([]);
    isFull = false;
    notifier.retry();
    notifier.status("reading");
    expect(received).toEqual(["RELOADING=1\nMONOTONIC_USEC=1234567", "READY=1", "STATUS=reading"]);
  });

  it("what a service manager receives is nothing, said once, when the manager has gone", () => {
    const gone = openNotifySocket();
    const notifier = notifierOf({ NOTIFY_SOCKET: gone.address });
    gone.close();
    notifier.ready();
    notifier.alive();
    notifier.stopping();
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatchObject({ code: "datagram_refused", subject: gone.address });
  });
});

describe("sends nothing without a service manager", () => {
  const missing = (): SendDatagram => {
    throw new KbsyncError("no datagrams can be sent: Cannot find package", {
      code: "datagram_unavailable",
      hint: "Install it.",
    });
  };
  it.each([
    ["no socket is named", {}, undefined, "no service manager asked for it"],
    ["the name is empty", { NOTIFY_SOCKET: "" }, undefined, "no service manager asked for it"],
    ["it is no Unix socket", { NOTIFY_SOCKET: "vsock:2:1234" }, undefined, "vsock:2:1234 is no Unix socket"],
    [
      "the package for it is missing",
      { NOTIFY_SOCKET: "/run/systemd/notify", WATCHDOG_USEC: "1000000" },
      missing,
      "no datagrams can be sent: Cannot find package Install it.",
    ],
  ])(
    "sends nothing without a service manager when %s",
    (_name, env: Record<string, string>, open, reason) => {
      const notifier = notifierOf(env, open);
      notifier.ready();
      notifier.reloading();
      notifier.status("all");
      notifier.alive();
      notifier.extend(1);
      notifier.stopping();
      notifier.retry();
      expect(notifier.hasListener).toBe(false);
      expect(notifier.watchdogMs).toBeUndefined();
      expect(silences).toEqual([reason]);
      expect(problems).toEqual([]);
    },
  );
});

it.each([
  ["asked for of this process", { WATCHDOG_USEC: "30000000", WATCHDOG_PID: "7" }, 30_000],
  ["asked for without a pid", { WATCHDOG_USEC: "1500000" }, 1500],
  ["asked for of another process", { WATCHDOG_USEC: "30000000", WATCHDOG_PID: "8" }, undefined],
  ["not asked for", {}, undefined],
  ["asked for with no time", { WATCHDOG_USEC: "0" }, undefined],
  ["asked for with no number", { WATCHDOG_USEC: "soon" }, undefined],
])("signs of life are %s", (_name, env: Record<string, string>, expected) => {
  expect(watchdogMs(env, 7)).toBe(expected);
});

it("a socket that nobody listens on is refused with its address", () => {
  expect(() => openDatagrams()("/nonexistent/notify", "READY=1")).toThrow(
    expect.objectContaining({ code: "datagram_refused", subject: "/nonexistent/notify" }),
  );
});
