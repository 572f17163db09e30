import { z } from "zod";
import { record, list } from "./records.ts";

/** Result of an audit for one source. */
const AuditedSource = record({
  path: z.string(),
  /** Compared resources; excludes those sent very recently. */
  resources: z.number(),
  missing: z.number(),
  altered: z.number(),
  /** Files by the state of their newest version, and deletes, as in the source's status. Only searchable ones are compared. */
  files: z.number(),
  searchable: z.number(),
  reading: z.number(),
  waiting: z.number(),
  failed: z.number(),
  held: z.number(),
  deletesRefused: z.number(),
  /** Paths of which nothing is known. */
  unreadable: z.number(),
  /** Resources too new to be judged by a list that may be stale. */
  unjudged: z.number(),
  /** Why nothing is sent again although much is missing or altered; null if repairs proceed. */
  lost: z.string().nullable(),
  /** False: not listed, because the service has not reported the collection's id yet. */
  listed: z.boolean(),
});
export type AuditedSource = z.infer<typeof AuditedSource>;

/** A difference between the service's list and the ledger. */
const Finding = record({
  /** Folder of the source; one of them if several share collection and owner. */
  source: z.string(),
  /** Empty for a resource that belongs to no file. */
  path: z.string(),
  docId: z.string(),
  title: z.string(),
  /**
   * `missing`, `altered`: a file's resource. `twice`: a second resource of a file. `returned`: a resource that we deleted
   * exists again. `foreign`: of unknown origin.
   */
  kind: z.enum(["missing", "altered", "twice", "returned", "foreign"]),
  /** Description for people. */
  what: z.string(),
  /** Whether it is being repaired; a foreign resource never is. */
  repaired: z.boolean(),
});
export type Finding = z.infer<typeof Finding>;

/** Result of an audit. */
export const AuditReport = record({
  sources: list(AuditedSource),
  /** At most 10,000, with only the first few foreign resources. */
  findings: list(Finding),
  /** Findings beyond those listed, foreign resources excluded. */
  unnamed: z.number(),
  /** Resources of unknown origin. They are never touched. */
  foreign: z.number(),
  /** Whether no difference is left, every file is searchable, and no delete is held or refused. */
  agrees: z.boolean(),
  /** Findings that are not repaired, foreign resources excluded. */
  left: z.number(),
});
export type AuditReport = z.infer<typeof AuditReport>;
