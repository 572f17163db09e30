import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import koffi from "koffi";
import { socketAddress } from "../../src/system/datagram.ts";

/** A service manager's side of a notification socket. */
export interface NotifySocket {
  /** Value for `NOTIFY_SOCKET`. */
  readonly address: string;
  /** Messages that came since the last call, in their order. */
  take(): string[];
  close(): void;
}

const MESSAGE_BYTES_MAX = 4096;
const MSG_DONTWAIT = 0x40;
const AF_UNIX = 1;
const SOCK_DGRAM = 2;

let sockets = 0;

/** Listens on a path, or under an abstract name. Throws where the C library cannot be called. */
export function openNotifySocket(kind: "path" | "abstract" = "path"): NotifySocket {
  const library = koffi.load(null);
  const socket = library.func("int socket(int domain, int type, int protocol)");
  const bind = library.func("int bind(int fd, const uint8_t *address, uint32_t length)");
  const recv = library.func("intptr_t recv(int fd, _Out_ uint8_t *bytes, size_t length, int flags)");
  const close = library.func("int close(int fd)");
  const folder = mkdtempSync(join(tmpdir(), "kbsync-notify-"));
  const address = kind === "path" ? join(folder, "notify") : `@kbsync-test-${process.pid}-${(sockets += 1)}`;
  const fd = Number(socket(AF_UNIX, SOCK_DGRAM, 0));
  const at = socketAddress(address);
  if (Number(bind(fd, at, at.length)) !== 0) throw new Error(`cannot bind ${address}`);
  return {
    address,
    take: () => {
      const messages: string[] = [];
      for (;;) {
        const bytes = Buffer.alloc(MESSAGE_BYTES_MAX);
        const length = Number(recv(fd, bytes, bytes.length, MSG_DONTWAIT));
        if (length < 0) return messages;
        messages.push(bytes.subarray(0, length).toString());
      }
    },
    close: () => {
      close(fd);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
