import { createHash } from "node:crypto";
import ignore, { type Ignore } from "ignore";
import type { Clock } from "../virtual/clock.ts";
import { SECOND } from "../history.ts";
import type { Disk } from "./disk.ts";
import type { Normaliser } from "./normalise.ts";
import type { Resource, Service } from "./service.ts";

/** Name of the ignore file; the simulation has one at each root alone. */
export const IGNORE_FILE = ".kbsyncignore";
/** The same in a Git work tree. */
export const GIT_IGNORE = ".gitignore";
export const IGNORE_FILES: readonly string[] = [GIT_IGNORE, IGNORE_FILE];

/** What a file should be at the service. */
export interface Expected {
  /** On the simulation's disk: of the second source with `SECOND` before it. */
  readonly path: string;
  /** Owner and description, which distinguish the resources of files: see `placeOf`. */
  readonly place: string;
  readonly ownerId: string;
  /** The file belongs to the second source. */
  readonly isSecond: boolean;
  readonly title: string;
  /** Text, address or hash of the bytes; undefined where the file may be whatever it was before, or nothing. */
  readonly body: string | undefined;
  /** Since when there is a file, and since when it is so, by the simulation's clock. */
  readonly sinceMs: number;
  readonly changedMs: number;
}

/** What the folders should be at the service, and since when each file was as it is. */
export interface Expectations {
  /** Something changed on the disk. */
  refresh(): void;
  /** Another number whenever what is wanted may have changed. */
  version(): number;
  /** All wanted files, by path. */
  all(): readonly Expected[];
  /** How many files at a place must have a resource: two at most, where two sources have one owner. */
  countAt(place: string): number;
  /** Since when all wanted files at a place have been there; undefined: there is none. */
  thereSinceMs(place: string): number | undefined;
  /** What the wanted file at a place should be; undefined where one may be anything or nothing, or is none. */
  bodyAt(place: string): string | undefined;
}

/** Begins the places of a second source that has an owner of its own. */
export const SECOND_PLACE = "second: ";

/** Who owns the resources of which source. */
export interface Owners {
  readonly first: string;
  /** Undefined: there is no second source. */
  readonly second: string | undefined;
}

/** Where a resource belongs: what its files' `Expected.place` is. */
export function placeOf({ ownerId, description }: Pick<Resource, "ownerId" | "description">, owners: Owners) {
  const isSecond = owners.second === ownerId && owners.second !== owners.first;
  return isSecond ? SECOND_PLACE + description : description;
}

/** Watches a disk's files. The rules are stated here once more, without the daemon's own code. */
export function openExpectations(
  clock: Clock,
  disk: Disk,
  owners: Owners,
  normaliser: Normaliser,
  { keeps, hasInner }: { readonly keeps: boolean; readonly hasInner: () => boolean },
): Expectations {
  interface Known {
    readonly expected: Expected;
    readonly sinceMs: number;
    readonly inode: number | undefined;
  }
  let known = new Map<string, Known>();
  let all: readonly Expected[] = [];
  let version = 0;
  let places = new Map<string, readonly Known[]>();
  const testOf = (prefix: string): ((path: string) => ReturnType<Ignore["test"]>) => {
    const ignored = ignore({ ignorecase: false });
    for (const name of IGNORE_FILES) ignored.add(disk.bytes(`${prefix}${name}`)?.toString("utf8") ?? "");
    return (path) => ignored.test(path.slice(prefix.length));
  };
  let [first, second] = [testOf(""), testOf(SECOND)];
  let hadInner = false;
  return {
    refresh: () => {
      const changed = [...disk.takeChanged()];
      // Other sources make other files of all that are there.
      if (hasInner() !== hadInner) changed.push(SECOND.slice(0, -1));
      hadInner = hasInner();
      const isTouched = (path: string): boolean =>
        changed.some((each) => each === "" || path === each || path.startsWith(`${each}/`));
      if (IGNORE_FILES.some(isTouched)) first = testOf("");
      if (IGNORE_FILES.some((name) => isTouched(`${SECOND}${name}`))) second = testOf(SECOND);
      const isOwn = (path: string): boolean => hadInner && path.startsWith(SECOND);
      const isIgnored = (path: string): boolean => {
        if (!path.startsWith(SECOND)) return first(path).ignored;
        const { ignored, unignored } = second(path);
        return ignored || (!hadInner && !unignored && first(path).ignored);
      };
      const wanted = disk.files().filter((path) => isDocument(path) && !isIgnored(path));
      const gone = known;
      known = new Map(
        wanted.map((path) => {
          const before = known.get(path);
          if (before !== undefined && !isTouched(path)) return [path, before];
          // Renamed over: the name is another file's now.
          const inode = disk.inode(path);
          const isSecond = isOwn(path);
          const isSame =
            before !== undefined && before.inode === inode && before.expected.isSecond === isSecond;
          const sinceMs = isSame ? before.sinceMs : clock.nowMs();
          const description = isSecond ? path.slice(SECOND.length) : path;
          const ownerId = (isSecond ? owners.second : undefined) ?? owners.first;
          const { title, body } = contentOf(description, disk.bytes(path) ?? Buffer.alloc(0), normaliser);
          const isAsBefore = isSame && before.expected.title === title && before.expected.body === body;
          const expected = {
            path,
            place: placeOf({ ownerId, description }, owners),
            ownerId,
            isSecond,
            title,
            body,
            sinceMs,
            changedMs: isAsBefore ? before.expected.changedMs : clock.nowMs(),
          };
          return [path, { expected, sinceMs, inode }];
        }),
      );
      // The document of a file that is gone may stay, or have moved with the file.
      for (const [path, { expected }] of keeps ? gone : []) {
        if (known.has(path)) continue;
        const sinceMs = Infinity;
        known.set(path, { expected: { ...expected, sinceMs, body: undefined }, sinceMs, inode: undefined });
      }
      all = [...known.values()].map(({ expected }) => expected);
      version += 1;
      places = Map.groupBy(known.values(), ({ expected }) => expected.place);
    },
    version: () => version,
    all: () => all,
    countAt: (place) => places.get(place)?.filter(({ expected }) => expected.body !== undefined).length ?? 0,
    thereSinceMs: (place) => {
      const files = places.get(place);
      return files === undefined ? undefined : Math.max(...files.map(({ sinceMs }) => sinceMs));
    },
    bodyAt: (place) => {
      const bodies = places.get(place)?.map(({ expected }) => expected.body) ?? [];
      return bodies.includes(undefined) ? undefined : bodies[0];
    },
  };
}

/** Temporary and hidden files are none. */
function isDocument(path: string): boolean {
  return !path.split("/").some((name) => name.startsWith(".")) && !path.endsWith(".tmp");
}

function contentOf(path: string, bytes: Buffer, normaliser: Normaliser): Pick<Expected, "title" | "body"> {
  const named = normaliser.title(path);
  if (bytes.length === 0) return { title: named, body: undefined };
  const text = bytes.toString("utf8");
  if (path.endsWith(".url")) return { title: named, body: /^URL=(.*)$/m.exec(text)?.[1] };
  if (text.startsWith("%PDF-")) return { title: named, body: sha256(bytes) };
  if (path.endsWith(".pdf")) return { title: named, body: undefined };
  const heading = path.endsWith(".md") ? /^# (.+)$/m.exec(text)?.[1] : undefined;
  return {
    title: heading === undefined ? named : normaliser.title(heading.trim()),
    body: normaliser.text(text),
  };
}

/** What a resource holds, as `Expected.body` returns it. */
export function bodyOf(resource: Resource, service: Service): string {
  if (resource.url === undefined) return resource.content ?? "";
  return service.uploadOf(resource.url) ?? resource.url;
}

function sha256(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
