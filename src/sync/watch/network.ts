import { statfsSync } from "node:fs";

/** Types of file systems whose changes may be made elsewhere, as statfs(2) and linux/magic.h number them. */
const REMOTE_TYPES: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0xff534d42, "CIFS"],
  [0xfe534d42, "SMB"],
  [0x517b, "SMB"],
  [0x65735546, "FUSE"],
  [0x01021997, "9P"],
  [0x00c36400, "Ceph"],
  [0x0bd00bd0, "Lustre"],
  [0x5346414f, "AFS"],
  [0x786f4256, "VirtualBox shared folders"],
]);

/**
 * The name of the file system a folder is on if inotify does not see every change there: what another machine writes,
 * or a FUSE program's backing store. Undefined on a local one, and where nobody can tell.
 */
export function remoteFileSystem(path: string): string | undefined {
  try {
    // Some types are above 2^31, which libuv gives as they are and others as negative numbers.
    return REMOTE_TYPES.get(statfsSync(path).type >>> 0);
  } catch {
    return undefined; // a missing folder is the scan's to report
  }
}
