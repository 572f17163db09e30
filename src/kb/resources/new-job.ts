import type { CreateBody, UpdateBody } from "../../wire/resource.ts";
import type { ResourceJob } from "../store/resources.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";

/** Most waiting jobs of all accounts. */
const JOBS_MAX = 10_000;
/** Most characters in their bodies: a job stores its text on the disk until it is done. */
const JOB_CHARS_MAX = 1024 * 1024 * 1024;

/** The body of a job in the queue `ingest`. */
export type JobBody =
  | { readonly create: Pick<CreateBody, "url" | "content" | "locations"> }
  | { readonly update: UpdateBody };

/** Creates a job for the queue. Fields that are undefined are lost in its JSON. */
export function newJob(kb: KnowledgeBase, body: JobBody, fileToken: string | null): ResourceJob {
  const limits = { jobsMax: JOBS_MAX, charsMax: JOB_CHARS_MAX };
  return { body: JSON.stringify(body), fileToken, nowMs: kb.nowMs(), ...limits };
}
