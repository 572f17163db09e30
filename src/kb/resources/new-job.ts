import type { CreateBody, UpdateBody } from "../../wire/resource.ts";
import type { ResourceJob } from "../store/store.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";

/** Jobs of all accounts that may wait; an initial load of more is for bulk create, which says at once how each fared. */
const JOBS_MAX = 10_000;
/** Characters of their bodies: a job holds the text it brings until it is done, on the disk. */
const JOB_CHARS_MAX = 1024 * 1024 * 1024;

/** What a job of the queue `ingest` brings. */
export type JobBody =
  | { readonly create: Pick<CreateBody, "url" | "content"> }
  | { readonly update: UpdateBody };

/** A job for the queue; the fields that are undefined do not come back. */
export function newJob(kb: KnowledgeBase, body: JobBody, fileToken: string | null): ResourceJob {
  const limits = { jobsMax: JOBS_MAX, charsMax: JOB_CHARS_MAX };
  return { body: JSON.stringify(body), fileToken, nowMs: kb.nowMs(), ...limits };
}
