import { statfsSync } from "node:fs";

/** File system types that other machines may change, as numbered by statfs(2) and linux/magic.h. */
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
 * The name of a folder's file system if inotify does not see every change in it, such as writes of another machine or to the
 * backing store of a FUSE program. Undefined for a local one, and if the type cannot be determined.
 */
export function remoteFileSystem(path: string): string | undefined {
  try {
    // libuv returns types above 2^31 either unchanged or as negative numbers.
    return REMOTE_TYPES.get(statfsSync(path).type >>> 0);
  } catch {
    return undefined; // a missing folder is the scan's to report
  }
}
