/** The operations of the service, as faults name them. */
export type Operation =
  | "upload"
  | "create"
  | "update"
  | "delete"
  | "list"
  | "collections"
  | "download"
  | "read"
  | "search"
  | "other";

/** What goes wrong with one request. */
export type FaultKind =
  /** The service never sees it; the connection breaks. */
  | "request-lost"
  /** The service acts; the connection breaks. */
  | "answer-lost"
  /** The service acts; half of its answer comes. */
  | "answer-cut"
  /** The service acts; the answer is a page of a proxy, with status 200. */
  | "answer-page"
  /** A proxy answers 200 with its page; the service never sees the request. */
  | "page-alone"
  /** The service acts and answers 500 all the same. */
  | "acted-500"
  | "500"
  | "502"
  /** Retry-After in seconds. */
  | "429"
  /** Retry-After as a date. */
  | "429-date"
  | "503"
  | "401"
  | "400"
  /** A gateway's own 404. */
  | "404-page"
  /** 200 with `success: false`. */
  | "unsuccess"
  /** The service acts; the answer comes after the client gave up waiting. */
  | "answer-late"
  /** The connection breaks; the service acts some time later. */
  | "acts-late"
  /** A proxy sends the request on twice; the second answer comes. */
  | "twice"
  /** The service does not act and says in its own words that there is no such resource. */
  | "404-false"
  /** The service acts and says all the same that there is no such resource. */
  | "404-acted"
  | "403"
  /** Of a list: status 200 with a part of the resources. */
  | "list-short"
  /** Of a list: in another order. */
  | "list-reordered"
  /** Of a list: as it was some time ago. */
  | "list-stale";

/** What goes wrong for some time. */
export type StormKind =
  /** Nobody listens. */
  | "down"
  /** A part of all requests meets this fault. */
  | Extract<
      FaultKind,
      | "request-lost"
      | "answer-lost"
      | "500"
      | "502"
      | "429"
      | "429-date"
      | "503"
      | "401"
      | "answer-page"
      | "404-false"
      | "list-short"
      | "list-reordered"
      | "list-stale"
    >
  /** Every update is refused. */
  | "400"
  /** The list shows what was written so long ago. */
  | "list-lags";

/**
 * Something that happens in a simulated world. What is not possible when its time comes is left out. What is given is part
 * of its world: without it, what the judge demands would be wrong.
 */
export type Happening = { readonly atMs: number; readonly isGiven?: true } & (
  | { readonly kind: "write"; readonly path: string; readonly text: string }
  | { readonly kind: "append"; readonly path: string; readonly text: string }
  | { readonly kind: "rename"; readonly path: string; readonly to: string }
  | { readonly kind: "swap"; readonly path: string; readonly to: string }
  | { readonly kind: "copy"; readonly path: string; readonly to: string }
  /**
   * `empties`: nothing is left, so that none of it may be deleted unasked. `everyMs`: the paths go one after another, as one
   * burst.
   */
  | {
      readonly kind: "remove";
      readonly paths: readonly string[];
      readonly empties?: true;
      readonly everyMs?: number;
    }
  /** A file is rewritten as editors, scripts and installers do it; it is empty, short or missing meanwhile. */
  | {
      readonly kind: "rewrite";
      readonly path: string;
      readonly manner: "emptied" | "in-steps" | "renamed-away" | "renamed-over" | "removed";
      readonly forMs: number;
      readonly text: string;
    }
  /** `back`: the modification time is set to what it was before the last write, as a restored file's. */
  | { readonly kind: "touch"; readonly path: string; readonly agoMs: number }
  | { readonly kind: "spoil"; readonly path: string; readonly code: "EACCES" | "EIO"; readonly forMs: number }
  | { readonly kind: "root"; readonly state: "missing" | "emptied" | "other"; readonly forMs: number }
  /**
   * A file system is unmounted (`away`) or hidden by another one (`over`) for some time: that of the source's folder (""), or
   * of one in it. It changes meanwhile.
   */
  | {
      readonly kind: "mount";
      readonly folder: string;
      readonly state: "away" | "over";
      readonly forMs: number;
      readonly changes: readonly { readonly path: string; readonly text: string }[];
    }
  /** A person agrees to what is held, if anything is. */
  | { readonly kind: "approve" }
  /** A person has the daemon send nothing for some time. */
  | { readonly kind: "pause"; readonly forMs: number }
  /** Somebody copies the state folder. */
  | { readonly kind: "backup" }
  /** The service loses a part of what it holds. */
  | { readonly kind: "reset"; readonly share: number }
  /** The service becomes what it was so long ago, as by a backup. */
  | { readonly kind: "restore"; readonly agoMs: number }
  /** Others make a resource in the daemon's own collection and under its owner. */
  | { readonly kind: "foreign"; readonly title: string; readonly description: string; readonly text: string }
  /** A person does something at the service's own page, to the nth of the daemon's resources. */
  | { readonly kind: "page"; readonly deed: PageDeed; readonly nth: number }
  /** The next process runs on another machine, with a copy of the state folder or an empty one. */
  | { readonly kind: "elsewhere"; readonly state: "copied" | "new" }
  /** The machine's clock is set. */
  | { readonly kind: "clock"; readonly byMs: number }
  /**
   * The daemon's process dies at its nth effect from now.
   */
  | {
      readonly kind: "crash";
      readonly effects: number;
      readonly kept: Kept;
      readonly restMs: number;
      readonly next: Mode;
    }
  /** Processes die one after another, each at its nth effect; nothing of the ledger is lost. */
  | { readonly kind: "kills"; readonly effects: readonly number[]; readonly restMs: number }
  /** The daemon is stopped in an orderly way. */
  | { readonly kind: "stop"; readonly restMs: number; readonly next: Mode }
  /**
   * The configuration is another one from the next start on. `team`: metadata that it sets for every file. `inner`: whether
   * it has the inner source, whose files are the outer one's otherwise.
   */
  | {
      readonly kind: "configure";
      readonly chunkSize?: number;
      readonly team?: string;
      readonly inner?: boolean;
    }
  | {
      readonly kind: "fault";
      readonly operation: Operation | "any";
      readonly fault: FaultKind;
      /** Seconds of a Retry-After, or milliseconds until a late act or answer. */
      readonly amount: number;
    }
  | {
      readonly kind: "storm";
      readonly storm: StormKind;
      readonly forMs: number;
      readonly share: number;
      readonly amount: number;
    }
  /** Hints of changes are lost; `reported`: the watcher notices it at the end and has the whole source checked. */
  | { readonly kind: "deaf"; readonly forMs: number; readonly reported: boolean }
  /** Some folder cannot be watched: hints are lost, and the watcher says so. */
  | { readonly kind: "degraded"; readonly forMs: number }
);

/**
 * What a person does to a resource: writes another description, removes its marker, or the end of it, writes another text, copies
 * it with its description, also with another text, or deletes it.
 */
export type PageDeed = "describe" | "unmark" | "damage" | "edit" | "copy" | "copy-edited" | "delete";

/** How the daemon runs: until it is stopped, or for one pass. */
export type Mode = "run" | "once";

/**
 * What a crash leaves of the ledger: all that was committed (kill -9); of what was not flushed a part, from 0 to below 1
 * (power loss); nothing, for somebody deletes it; or the last backup, which somebody puts in its place.
 */
export type Kept = "all" | number | "none" | "backup";

/** What a world is like from its first moment to its last. */
export interface Conditions {
  /** Additions to the bare specification. */
  readonly collections: boolean;
  readonly pages: boolean;
  readonly keys: boolean;
  /** The service refuses a list with a parameter it does not know. */
  readonly strictList: boolean;
  /** The service's clock minus ours. */
  readonly skewMs: number;
  readonly settleMs: number;
  readonly concurrency: number;
  readonly rescanMinutes: number;
  readonly requestTimeoutMs: number;
  /** Longest time of one call into the disk. */
  readonly slowDiskMs: number;
  /** Longest way of a request or an answer. */
  readonly slowNetMs: number;
  /** Longest that the service works on an address after it has answered, where it may; 0 or none: it does so before. */
  readonly workMs?: number;
  /** How often the ledger is compared with the list; 0: never. */
  readonly auditHours: number;
  readonly mode: Mode;
  /** Resources of others, some of them in the daemon's own collection and under its owner. */
  readonly strangers: boolean;

  /** What follows is missing in a kind world. */

  /** Each create, update and delete becomes visible to lists after a delay of its own, up to this. */
  readonly listLagMs?: number;
  /** What the service changes in the texts and titles that it stores. */
  readonly normalisation?: Normalisation;
  /** The service shows a resource by its id, though it does not answer before its work. */
  readonly reads?: boolean;
  /** A new resource is unknown to requests by its id for some time, up to this. */
  readonly lateMs?: number;
  /** There is a second source: of another owner, or of the same. Its paths begin with `SECOND`. */
  readonly second?: "other-owner" | "same-owner";
  /** The second source lies inside the first one. */
  readonly nested?: true;
  /** The inner source is not in the configuration at first. */
  readonly joins?: true;
  /** The source's folder is a Git work tree, and its ignore file is Git's. */
  readonly git?: true;
  /** The sources delete nothing. */
  readonly additive?: true;
  /** The service works on so many documents at once, on each for so long at most. */
  readonly slow?: {
    readonly eachMs: number;
    readonly atOnce: number;
    /** The second source's documents cost no time, and are there so long after they were written at most. */
    readonly quickMs?: number;
  };
  /** The disk keeps times in multiples of this. */
  readonly coarseMs?: number;
  /** The source's folder is a mount, and so is one in it; what happens is found without a rescan. */
  readonly mounted?: true;
  /** How often somebody asks for the status. */
  readonly statusEveryMs?: number;
  /** How often somebody waits for agreement. */
  readonly waitEveryMs?: number;
  /** From when on the service takes metadata and says so. */
  readonly metadataFromMs?: number;
  /** When the ledger is lost nothing is under way, and a file that is only renamed keeps its resource. */
  readonly isLostAtRest?: true;
  /** What the service does against the specification, or leaves out of it, for its whole life. */
  readonly hostility?: Hostility;
}

/** Ways of a service of its own. None excludes another. */
export interface Hostility {
  /** A list shows the oldest so many resources, as if there were no others. */
  readonly listMax?: number;
  /** A list shows what was so long ago. */
  readonly listStaleMs?: number;
  /** A list shows the resources of all owners. */
  readonly ignoresOwner?: true;
  /** What answers and lists show of a resource has unusable values. */
  readonly odd?: OddFields;
  readonly descriptions?: "as-sent" | "lower-case" | "escaped" | "trimmed" | "cut" | "dropped";
  /** Every title is "Untitled". */
  readonly untitled?: true;
  /** A PUT changes nothing, makes another resource in place of the old one, or is answered with one `_id` for all. */
  readonly puts?: "ignored" | "copied" | "one-id";
  /** A DELETE is answered 403, or 200 without deleting anything. */
  readonly deletes?: "forbidden" | "ignored";
  /** A create with the title of a resource changes that one, and answers with its `_id`. */
  readonly upserts?: true;
}

/** Unusable values: null in optional fields, texts for numbers, numbers for texts, ids as numbers, or no collection. */
export type OddFields = "nulls" | "texts" | "numbers" | "numeric-ids" | "no-collection";

/** What a service changes in what it stores. */
export interface Normalisation {
  /** Blanks at the ends of lines go. */
  readonly trims: boolean;
  /** Unicode is composed. */
  readonly composes: boolean;
  /** Texts are stored as HTML. */
  readonly escapes?: boolean;
  /** Longest title; 0: any. */
  readonly titleChars: number;
}

/** Begins the paths of the second source. */
export const SECOND = "@2/";

/** A whole history: everything that a simulation does follows from it. */
export interface History {
  readonly seed: number;
  /** Names of the unkind worlds that it takes place in. */
  readonly worlds?: readonly string[];
  readonly conditions: Conditions;
  /** By time. */
  readonly happenings: readonly Happening[];
}
