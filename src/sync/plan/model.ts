import type { Settings, Tier } from "../../wire/primitives.ts";

/** The nouns of the plan: plain readonly data, no behaviour. */

/**
 * A path below a source's root as the disk spells it: `/` between parts, no leading `./`, never empty. Compared as
 * code units; never normalised, for two spellings are two files on Linux.
 */
export type RelativePath = string;

/** A regular file as the scan saw it. Times in milliseconds with their fraction kept. */
export interface ScanEntry {
  readonly path: RelativePath;
  readonly sizeBytes: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly ino: number;
  /** Set: the path leads through a followed symbolic link, and the other facts are those of its target. */
  readonly link?: FollowedLink;
}

/** How a path leads through symbolic links. */
export interface FollowedLink {
  /** Absolute path of the target, free of links. */
  readonly real: string;
  /** Names the links on the way. It is part of `ino`, so that a link and its target are never taken for one another. */
  readonly mark: string;
}

/** Where the scan could not look. Nothing at or below `path` ("" is the root) may be taken for deleted. */
export interface Unreadable {
  readonly path: RelativePath;
  /** System error code, such as EACCES. */
  readonly code: string;
}

/** Identity of a source's root folder, to notice an unmounted or replaced one. */
export interface RootIdentity {
  readonly dev: number;
  /** Inode number, mixed with the time of birth where that is known: a number alone is used again at once. */
  readonly ino: number;
  /** True: the time of birth is mixed in, so that another folder is never taken for this one. */
  readonly born?: true;
}

/** A file that is left out because there is nothing in it for a knowledge base: that is no failure. */
export interface Skip {
  readonly entry: ScanEntry;
  readonly reason: string;
  /** True: there is no file, as far as the source goes (a link that is not followed). A resource of its path is deleted. */
  readonly absent?: boolean;
}

/** Why an empty file is skipped, in words. */
export const EMPTY_FILE = "the file is empty";

/** What the disk holds of one source, after the ignore rules. */
export interface Scan {
  /** Undefined: the root is missing or no folder. */
  readonly root: RootIdentity | undefined;
  readonly entries: readonly ScanEntry[];
  readonly unreadable: readonly Unreadable[];
  /** Files that are there and wanted but cannot become a resource: too large, or with a name that cannot be told. */
  readonly refused: readonly { readonly path: RelativePath; readonly reason: string }[];
  /** Files of a kind that is never text and that no service takes, judged by the name. Empty files are `entries`. */
  readonly skipped: readonly Skip[];
  /**
   * Undefined: the whole source. Else the scan looked at these paths only (files, or folders with all below them),
   * and says nothing of any other.
   */
  readonly scope: readonly RelativePath[] | undefined;
}

/** How a file becomes a resource: its text as content, its bytes uploaded, or the address it holds. */
export type DocumentKind = "content" | "file" | "link";

/** Everything but the bytes that makes a resource what it is. Equal recipes and equal bytes mean nothing to send. */
export interface Recipe {
  readonly title: string;
  readonly description: string;
  readonly settings: Settings;
  readonly tier: Tier;
  readonly ownerId: string;
  readonly kind: DocumentKind;
  /** Grows when reading the same bytes gives another text. */
  readonly extractorVersion: number;
}

/**
 * Where a file stands. `agreed`: the service acknowledged what the row says. `unsure`: an update left and no answer
 * came, so the file is looked at and sent again. `failed`: refused, kept with the reason until the file or its rules
 * change. `skipped`: of no kind that is taken, or empty, and without a resource. `parked`: failed for now, tried again
 * later. `held`: the file is gone and its delete waits for a person.
 * `doomed`: a person agreed to that delete.
 */
export type FileState = "agreed" | "unsure" | "failed" | "skipped" | "parked" | "held" | "doomed";

/** What the ledger knows of a file, as far as comparing it with the disk needs. */
export interface KnownFile {
  /** Key of the ledger's row; survives moves. */
  readonly id: number;
  readonly path: RelativePath;
  /** Null: the service has no resource of this file. */
  readonly docId: string | null;
  readonly state: FileState;
  readonly sizeBytes: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly ino: number;
  /** Names the rules under which the file was read last; another value means it must be looked at again. */
  readonly rulesKey: number;
}

/** The part of a recipe that no update can change: a resource with another shape is replaced. */
export interface Shape {
  readonly kind: DocumentKind;
  readonly tier: Tier;
  readonly ownerId: string;
  readonly settings: Settings;
}

/** What the ledger knows of a file, whole: what is needed to decide after the file was read. */
export interface LedgerFile extends KnownFile {
  /** SHA-256 of the bytes the service acknowledged, hex; empty when unknown. */
  readonly hash: string;
  readonly digest: string;
  readonly title: string;
  /** Stands for title and description together. */
  readonly label: string;
  readonly extractorVersion: number;
  readonly shape: Shape;
  readonly fileUrl: string | null;
}

/** A resource as the service lists it, reduced to what is compared. */
export interface ListedResource {
  readonly docId: string;
  readonly createdMs: number | undefined;
  /** When the service last changed it, by its clock. */
  readonly updatedMs?: number | undefined;
  readonly url: string | undefined;
  readonly title: string;
  /** Stands for title and description together. */
  readonly label: string;
  /** Digest of the text; empty where the resource has an address. */
  readonly digest: string;
  /** Digest and label as older rows have them, where they differ. */
  readonly plainDigest?: string;
  readonly plainLabel?: string;
  /** How it is cut into chunks, as far as the list shows. */
  readonly settings?: Partial<Settings>;
  /** The service has not processed its text, or not yet. Default: it has. */
  readonly isUnfinished?: boolean;
  /** What of its document the service could not read. */
  readonly warning?: string;
}

/** A file that must be read before it can be decided what to send. */
export interface Look {
  readonly entry: ScanEntry;
  readonly known: KnownFile | undefined;
  /** Where the file was before it moved here. */
  readonly from?: RelativePath;
}

/** A row whose file is now at another path. */
export interface Move {
  readonly known: KnownFile;
  readonly entry: ScanEntry;
}

/** The difference between disk and ledger. Paths appear once each, rows once each. */
export interface Difference {
  readonly moves: readonly Move[];
  readonly looks: readonly Look[];
  /** Rows whose file is back, as it was, before its held delete was done. */
  readonly returned: readonly KnownFile[];
  /** Rows with a resource whose file is gone. */
  readonly gone: readonly KnownFile[];
  /** Rows without a resource whose file is gone: nothing to send. */
  readonly forgotten: readonly KnownFile[];
  readonly refused: readonly {
    readonly path: RelativePath;
    readonly reason: string;
    readonly known?: KnownFile;
  }[];
  /** Files newly found to be left out; none of their rows has a resource. */
  readonly skipped: readonly (Skip & { readonly known?: KnownFile })[];
  /** Entries of paths with work under way, which were left alone. */
  readonly leftAlone: readonly ScanEntry[];
  /** How many rows with a resource were left alone as well, and have no file, be it under another name. */
  readonly missingBusy: number;
  /** How many of those left alone have their file under another name. */
  readonly renamedBusy: number;
}

export type ActionKind = "create" | "update" | "retitle" | "move" | "replace" | "delete" | "touch";
