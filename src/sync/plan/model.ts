import type { DocumentKind, FileState } from "../../wire/daemon-files.ts";
import type { LeftOut } from "../../wire/daemon-folders.ts";
import type { Settings, Tier } from "../../wire/primitives.ts";

export type { DocumentKind, FileState } from "../../wire/daemon-files.ts";

/** The nouns of the plan: plain readonly data without behaviour. */

/**
 * A path below a source's root as the disk spells it: `/` between parts, no leading `./`, never empty. Compared as code
 * units and never normalised, because two spellings are two files on Linux.
 */
export type RelativePath = string;

/** Path of a folder below a source's root, spelled as a RelativePath; "" is the root itself. */
export type FolderPath = string;

/** A regular file as the scan saw it. Times are in milliseconds, with their fraction. */
export interface ScanEntry {
  readonly path: RelativePath;
  readonly sizeBytes: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly ino: number;
}

/** A path that the scan could not read. Nothing at or below `path` ("" is the root) counts as deleted. */
export interface Unreadable {
  readonly path: RelativePath;
  /** System error code, such as EACCES. */
  readonly code: string;
}

/** Identity of a source's root folder. Detects an unmounted or replaced one. */
export interface RootIdentity {
  readonly dev: number;
  /** Inode number, mixed with the time of birth where that is known: a number alone is reused at once. */
  readonly ino: number;
  /** If true, the time of birth is mixed in, so that another folder is never mistaken for this one. */
  readonly born?: true;
}

/** A file that is left out because it holds nothing for a knowledge base. This is not a failure. */
export interface Skip {
  readonly entry: ScanEntry;
  readonly reason: string;
}

/** The reason shown for an empty file. */
export const EMPTY_FILE = "the file is empty";

/** What a look at the disk found, of the whole source or of some paths. */
export interface Scan {
  /** Undefined: the root is missing or is not a folder. */
  readonly root: RootIdentity | undefined;
  readonly entries: readonly ScanEntry[];
  readonly unreadable: readonly Unreadable[];
  /** Files that are wanted but cannot become a resource: too large, or with a name that cannot be decoded. */
  readonly refused: readonly { readonly path: RelativePath; readonly reason: string }[];
  /** Files whose name shows a kind that is never text and that no service accepts. Empty files are in `entries`. */
  readonly skipped: readonly Skip[];
  /** What the rules leave out, by rule; undefined unless the scan covers the whole source. */
  readonly leftOut?: readonly LeftOut[];
  /**
   * Undefined: the whole source. Otherwise the scan covers only these paths (files, or folders with all below them).
   */
  readonly scope: readonly RelativePath[] | undefined;
}

/**
 * Everything but the bytes that makes a resource what it is. If recipe and bytes are equal, there is nothing to send.
 */
export interface Recipe {
  readonly title: string;
  readonly description: string;
  readonly settings: Settings;
  readonly tier: Tier;
  readonly ownerId: string;
  readonly kind: DocumentKind;
  /** Increases when reading the same bytes yields another text. */
  readonly extractorVersion: number;
}

/** The fields of a ledger row that are compared with the disk. */
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
  /** Identifies the rules under which the file was last read. Under another value it must be checked again. */
  readonly rulesKey: number;
}

/** The part of a recipe that no update can change. A resource with another shape is replaced. */
export interface Shape {
  readonly kind: DocumentKind;
  readonly tier: Tier;
  readonly ownerId: string;
  readonly settings: Settings;
}

/** Everything the ledger knows about a file: what deciding requires after the file was read. */
export interface LedgerFile extends KnownFile {
  /** SHA-256 of the bytes the service acknowledged, hex; `kb:` and a tag where only a marker shows them; empty when unknown. */
  readonly hash: string;
  readonly digest: string;
  readonly title: string;
  /** Stands for title and description together. */
  readonly label: string;
  readonly extractorVersion: number;
  /** Former versions that this ledger sent, as `withSent` gives them. */
  readonly sent: string;
  readonly shape: Shape;
  readonly fileUrl: string | null;
  /** Hash of the metadata that the service acknowledged; null: none. */
  readonly metadataHash: string | null;
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
  /** Chunking settings, as far as the list shows them. */
  readonly settings?: Partial<Settings>;
  /** The service has not processed its text, or not yet all of it. Default: it has. */
  readonly isUnfinished?: boolean;
  /** The part of its document that the service could not read. */
  readonly warning?: string;
  /** Hash of its metadata, if the list shows some. */
  readonly metadataHash?: string;
}

/** A file that must be read before the plan can decide what to send. */
export interface Candidate {
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

/** The difference between disk and ledger, unordered. Each path and each row appears once. */
export interface Difference {
  readonly moves: readonly Move[];
  readonly candidates: readonly Candidate[];
  /** Rows whose file returned unchanged before its held delete was done. */
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
  /** Entries of paths with work in flight, which are not compared. */
  readonly uncompared: readonly ScanEntry[];
  /** Number of rows with a resource whose path has work in flight and whose file is gone, under every name. */
  readonly missingBusy: number;
  /** Number of rows with a resource whose path the scan could not read. */
  readonly hidden: number;
}

export type ActionKind = "create" | "update" | "retitle" | "move" | "replace" | "delete" | "touch";
