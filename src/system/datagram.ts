import type koffiModule from "koffi";
import { KbsyncError, messageOf } from "../lib/failure.ts";
import { lazyModule } from "../lib/lazy-module.ts";

/**
 * Sends one datagram to the Unix socket at an address: a path, or `@name` for one in the abstract namespace (unix(7)).
 * Node.js has no such sockets. Returns false, and sends nothing, while the receiver's queue is full.
 * Throws `datagram_refused`.
 */
export type SendDatagram = (address: string, text: string) => boolean;

/** Values of the Linux headers, the same on every processor that Node.js runs on but MIPS and SPARC. */
const AF_UNIX = 1;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0o2000000;
const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;

/** Native code, and optional: loaded only under a service manager. */
const koffi = lazyModule((load) => load("koffi") as typeof koffiModule);

/**
 * Opens a datagram sender that calls the C library Node.js has already loaded, so messages carry this process's pid. The
 * manager would refuse messages from a child where only the main process may notify. Throws `datagram_unavailable` when
 * koffi is missing or the system is not Linux.
 */
export function openDatagrams(): SendDatagram {
  if (process.platform !== "linux") throw unavailable(`this is ${process.platform}, not Linux`);
  try {
    const library = koffi().load(null);
    const socket = library.func("int socket(int domain, int type, int protocol)");
    const sendto = library.func(
      "intptr_t sendto(int fd, const uint8_t *bytes, size_t length, int flags, const uint8_t *address, uint32_t addressLength)",
    );
    const close = library.func("int close(int fd)");
    return (address, text) => {
      const to = socketAddress(address);
      const bytes = Buffer.from(text);
      const fd = Number(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      if (fd < 0) throw refused(address, koffi().errno());
      const sent = Number(sendto(fd, bytes, bytes.length, MSG_DONTWAIT | MSG_NOSIGNAL, to, to.length));
      // Read before another call into the library overwrites it.
      const errno = koffi().errno();
      close(fd);
      if (sent >= 0) return true;
      if (errno === koffi().os.errno["EAGAIN"]) return false;
      throw refused(address, errno);
    };
  } catch (error) {
    throw unavailable(messageOf(error), error);
  }
}

/** `struct sockaddr_un`: the family in two bytes, then the path; one in the abstract namespace begins with a zero byte. */
export function socketAddress(address: string): Buffer {
  const isAbstract = address.startsWith("@");
  const name = Buffer.from(isAbstract ? `\0${address.slice(1)}` : `${address}\0`);
  const family = Buffer.alloc(2);
  if (isLittleEndian()) family.writeUInt16LE(AF_UNIX);
  else family.writeUInt16BE(AF_UNIX);
  return Buffer.concat([family, name]);
}

function isLittleEndian(): boolean {
  return new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;
}

function unavailable(why: string, cause?: unknown): KbsyncError {
  return new KbsyncError(`no datagrams can be sent: ${why}`, {
    code: "datagram_unavailable",
    hint: "The optional package koffi is needed for it; `npm install koffi` where kbsync is installed brings it.",
    cause,
  });
}

function refused(address: string, errno: number): KbsyncError {
  return new KbsyncError(`a datagram to ${address} was refused, errno ${errno}`, {
    code: "datagram_refused",
    subject: address,
  });
}
