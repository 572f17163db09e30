import { createHash } from "node:crypto";
import ignore, { type Ignore } from "ignore";
import type { Clock } from "../virtual/clock.ts";
import { SECOND } from "../history.ts";
import { basename } from "node:path";
import { fileTag, sourceTag } from "../../../src/sync/plan/marker.ts";
import { NESTED_ROOT, SECOND_ROOT, type Disk } from "./disk.ts";
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
  /** Its path within its source, with `SECOND_PLACE` before it in the second one. */
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
  /** The wanted file at a place; undefined: there is none. */
  at(place: string): Expected | undefined;
}

/** Begins the places of the second source. */
export const SECOND_PLACE = "second: ";

/** Who owns the resources of which source. */
export interface Owners {
  readonly first: string;
  /** Undefined: there is no second source. */
  readonly second: string | undefined;
}

/** A description with its marker: path, tag of the source, tag of the file, and the rest. */
const DESCRIPTION = /^(.*?) ?\[kb:([a-z2-7]{8})\.([a-z2-7]{12})(\.[a-z2-7]{12}\.[a-z2-7]{8})\]$/s;
const SECOND_TAGS: ReadonlySet<string> = new Set(
  [SECOND_ROOT, NESTED_ROOT].map((root) => sourceTag(basename(root))),
);

/** The place of the file that a resource is, as its description was last sent: its `Expected.place`. */
export function placeOf({ sent }: Pick<Resource, "sent">): string {
  const [, path = sent, source = "", file] = DESCRIPTION.exec(sent) ?? [];
  const place = SECOND_TAGS.has(source) ? SECOND_PLACE + path : path;
  return file === fileTag(path) ? place : `${place}, unmarked`;
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
  let places: ReadonlyMap<string, Expected> = new Map();
  let version = 0;
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
            place: isSecond ? SECOND_PLACE + description : description,
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
      const facts = { ownerId: owners.first, isSecond: false, changedMs: clock.nowMs() };
      const strangers = disk
        .strangers()
        .map((path) => Object.assign({ path, place: path, title: path }, facts));
      const left = [...[...gone.values()].map(({ expected }) => expected), ...strangers];
      const present = new Set([...known.values()].map(({ expected }) => expected.place));
      // The document of a file that is gone, or was another folder's or source's, may stay, or have moved with the file.
      for (const each of keeps ? left : []) {
        if (present.has(each.place)) continue;
        const expected = { ...each, sinceMs: Infinity, body: undefined };
        known.set(`gone: ${each.place}`, { expected, sinceMs: Infinity, inode: undefined });
      }
      all = [...known.values()].map(({ expected }) => expected);
      places = new Map(all.map((each) => [each.place, each]));
      version += 1;
    },
    version: () => version,
    all: () => all,
    at: (place) => places.get(place),
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
