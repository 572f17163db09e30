import { jobKey } from "../queue/waits.ts";
import type { ResourceJob, ResourceKey } from "../store/resources.ts";
import type { JobBody } from "../store/rows/job-body.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";

/** Most waiting jobs of all accounts. */
const JOBS_MAX = 10_000;
/** Most characters in their bodies: a job stores its text on the disk until it is done. */
const JOB_CHARS_MAX = 1024 * 1024 * 1024;

/** Creates a job for the queue. */
export function newJob(kb: KnowledgeBase, body: JobBody, fileToken: string | null): ResourceJob {
  const limits = { jobsMax: JOBS_MAX, charsMax: JOB_CHARS_MAX };
  return { body: JSON.stringify(body), fileToken, nowMs: kb.nowMs(), ...limits };
}

/** Stops the work of any process on an entry that was replaced or removed, and notifies the requests that wait for its end. */
export function endJob({ leases, jobWaits, notices }: KnowledgeBase, at: ResourceKey): void {
  const key = jobKey(at);
  leases.recheck(key);
  jobWaits.notify(key);
  notices?.announce("ended", key);
}
