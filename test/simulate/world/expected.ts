import { createHash } from "node:crypto";
import { basename } from "node:path";
import ignore from "ignore";
import type { Clock } from "../virtual/clock.ts";
import type { Disk } from "./disk.ts";
import type { Resource, Service } from "./service.ts";

/** Name of the ignore file; the simulation has one at the root alone. */
export const IGNORE_FILE = ".kbsyncignore";

/** What a file should be at the service. */
export interface Expected {
  readonly path: string;
  readonly title: string;
  /** Text, address or hash of the bytes; undefined where the file may be whatever it was before, or nothing. */
  readonly body: string | undefined;
}

/** What the folder should be at the service, and since when each file was as it is. */
export interface Expectations {
  /** Something changed on the disk. */
  refresh(): void;
  /** All wanted files, by path. */
  all(): readonly Expected[];
  /** Since when there has been this wanted file at a path; undefined: there is none. */
  thereSinceMs(path: string): number | undefined;
  /** What the wanted file at a path should be; undefined where it may be anything or nothing, or is none. */
  bodyAt(path: string): string | undefined;
}

/** Watches a disk's files. The rules are told here once more, without the daemon's own code. */
export function openExpectations(clock: Clock, disk: Disk): Expectations {
  let known = new Map<string, { expected: Expected; sinceMs: number; inode: number | undefined }>();
  return {
    refresh: () => {
      const ignored = ignore({ ignorecase: false }).add(disk.bytes(IGNORE_FILE)?.toString("utf8") ?? "");
      const wanted = disk.files().filter((path) => isDocument(path) && !ignored.ignores(path));
      known = new Map(
        wanted.map((path) => {
          const before = known.get(path);
          // Renamed over: the name is another file's now.
          const inode = disk.inode(path);
          const sinceMs = before !== undefined && before.inode === inode ? before.sinceMs : clock.nowMs();
          const expected = expectedOf(path, disk.bytes(path) ?? Buffer.alloc(0));
          return [path, { expected, sinceMs, inode }];
        }),
      );
    },
    all: () => [...known.values()].map(({ expected }) => expected),
    thereSinceMs: (path) => known.get(path)?.sinceMs,
    bodyAt: (path) => known.get(path)?.expected.body,
  };
}

/** Temporary and hidden files are none. */
function isDocument(path: string): boolean {
  return !basename(path).startsWith(".") && !path.endsWith(".tmp");
}

function expectedOf(path: string, bytes: Buffer): Expected {
  if (bytes.length === 0) return { path, title: path, body: undefined };
  const text = bytes.toString("utf8");
  if (path.endsWith(".url")) return { path, title: path, body: /^URL=(.*)$/m.exec(text)?.[1] };
  if (text.startsWith("%PDF-")) return { path, title: path, body: sha256(bytes) };
  if (path.endsWith(".pdf")) return { path, title: path, body: undefined };
  const title = path.endsWith(".md") ? (/^# (.+)$/m.exec(text)?.[1] ?? path) : path;
  return { path, title, body: text };
}

/** What a resource holds, as `Expected.body` tells it. */
export function bodyOf(resource: Resource, service: Service): string {
  if (resource.url === undefined) return resource.content ?? "";
  return service.uploadOf(resource.url) ?? resource.url;
}

function sha256(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
