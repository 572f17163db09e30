import { KbsyncError } from "../../../lib/failure.ts";
import { fitsShare } from "../../../lib/shares.ts";
import { STILL_READ } from "../../../wire/constants.ts";
import type { Settings } from "../../../wire/primitives.ts";
import { CRASHES_MAX } from "../../queue/admission.ts";
import {
  IN_ORDER,
  LEASE_MS,
  type Lease,
  type LeasedJob,
  type NewJob,
  type Queue,
  type QueueFigures,
  type WaitingJob,
} from "../../queue/queue.ts";
import { mergeJobs } from "../rows/job-body.ts";
import { each, get, run, type Parameters, type Steps } from "./steps.ts";

/** What differs between the databases. */
export interface QueueDialect {
  /** Ends a selection of rows that a transaction changes: waits for rows that another one has locked, or skips them. */
  readonly lock: string;
  readonly skipLocked: string;
  /** Makes transactions that put a job into one line (`@queue`, `@line`) take turns. Undefined: there is one writer. */
  readonly lockLine: string | undefined;
}

/** The methods of the queue that are written once, and those that other transactions put and end jobs with. */
export type QueueSteps = {
  [M in Exclude<keyof Queue, "due">]: (
    ...given: globalThis.Parameters<Queue[M]>
  ) => Steps<Awaited<ReturnType<Queue[M]>>>;
} & {
  /** Merges a change into the entry of its document, or puts one. The caller has locked the document. Throws `queue_full`. */
  putChange(job: NewJob, settings: Settings): Steps<void>;
  /** Returns for each of these jobs, which are of one queue and one account, why it may not be put. */
  refusals(jobs: readonly NewJob[]): Steps<(KbsyncError | undefined)[]>;
  /** Puts jobs that `refusals` has admitted. */
  insert(jobs: readonly NewJob[]): Steps<void>;
  /** The document of an entry; undefined if the lease was lost. */
  documentOf(lease: Lease): Steps<{ readonly accountId: string; readonly id: string } | undefined>;
  /** Removes the entry of a document that is deleted. */
  removeChange(accountId: string, id: string): Steps<number>;
  hasChange(accountId: string, id: string): Steps<boolean>;
};

/** Maximum difference between two machines' clocks: a wait that starts further in the future was written by another clock. */
const CLOCKS_APART_MS = 60_000;
/** How long an entry is due, or has a lease without work, before it counts as overdue. */
export const OVERDUE_MS = 10 * 60_000;
/** Most bytes of pages that the entries of one account keep: those of hundreds of books. Pages beyond are read again. */
const PAGES_BYTES_MAX = 256 * 1024 * 1024;

/** Columns of a `WaitingJob`. A job whose lease ended while a worker ran it crashed the worker; `lease` counts that in the row. */
export const WAITING = `number, account_id AS "accountId", owner_id AS "ownerId", line, name, octet_length(body) AS "bodyBytes",
  changed_ms AS "changedMs",
  crashes + CASE WHEN worker IS NOT NULL AND is_working AND due_ms <= CAST(@nowMs AS bigint) THEN 1 ELSE 0 END AS crashes`;

const OF_LEASE = "number = @number AND token = @token AND worker IS NOT NULL";
const OF_DOCUMENT = "queue = 'ingest' AND account_id = @accountId AND name = @name";
const ORDERED = Object.entries(IN_ORDER).flatMap(([queue, isInOrder]) => (isInOrder ? [`'${queue}'`] : []));

// 0 is due at any clock time: the clock may be set back before the job is leased.
const INSERT = `
  INSERT INTO job (queue, account_id, owner_id, line, name, due_ms, created_ms, changed_ms, file_token, chars, body)
  VALUES (@queue, @accountId, @ownerId, @line, @name, 0, @nowMs, @nowMs, @fileToken, @chars, @body)`;

/**
 * A running change that is overtaken loses its lease. The newer one has at least one run of its own before it is given up, and needs nothing
 * before it (`line`). It is due since the first change that was.
 */
const OVERTAKE = `
  UPDATE job SET line = @line, body = @body, chars = @chars, changed_ms = CAST(@nowMs AS bigint),
    pages = CASE WHEN CAST(@keepsPages AS boolean) THEN pages END, file_token = coalesce(CAST(@fileToken AS text), file_token),
    attempts = 0, due_ms = 0,
    waits_from_ms = CASE WHEN worker IS NOT NULL OR due_ms > CAST(@nowMs AS bigint) THEN CAST(@nowMs AS bigint)
      WHEN due_ms > waits_from_ms THEN due_ms ELSE waits_from_ms END,
    token = token + 1, worker = NULL, crashes = CASE WHEN crashes > ${CRASHES_MAX} THEN ${CRASHES_MAX} ELSE crashes END
  WHERE number = @number`;

/** Returns the methods in the SQL of a database. */
export function queueSteps(dialect: QueueDialect): QueueSteps {
  return { ...putSteps(dialect), ...LOOKUPS, ...leaseSteps(dialect), ...ENDS };
}

/**
 * The due changes of a line (a name or parameter) of `ingest`: the newest, and the oldest so that none starves. The plus lets SQLite
 * read an index in this order, in place of sorting all that are due.
 */
export const dueChanges = (line: string): string =>
  [
    ["DESC", "CAST(@perLine AS bigint) - CAST(@perLine AS bigint) / 4"],
    ["ASC", "CAST(@perLine AS bigint) / 4"],
  ]
    .map(
      ([order, limit]) => `SELECT * FROM (SELECT ${WAITING} FROM job
        WHERE queue = 'ingest' AND is_failed = false AND line = ${line} AND +due_ms <= CAST(@nowMs AS bigint)
        ORDER BY changed_ms ${order}, number ${order} LIMIT ${limit}) AS found`,
    )
    .join(" UNION ");

// One more than the bound refuses every job, so the rest need not be counted.
const TOTALS = `
  SELECT count(*) AS jobs, count(*) FILTER (WHERE account_id = @accountId) AS "ownJobs",
    coalesce(sum(chars), 0) AS chars, coalesce(sum(chars) FILTER (WHERE account_id = @accountId), 0) AS "ownChars"
  FROM (SELECT account_id, chars FROM job WHERE queue = @queue AND is_failed = false LIMIT CAST(@enough AS bigint)) AS waiting`;

function putSteps({ lockLine }: QueueDialect) {
  return {
    refusals: (jobs) => refusals(jobs),
    insert,
    *put(job) {
      if (IN_ORDER[job.queue] && lockLine !== undefined)
        yield* run(lockLine, { queue: job.queue, line: job.line });
      const [refused] = yield* refusals([job]);
      if (refused !== undefined) throw refused;
      yield* insert([job]);
    },
    *putChange(job, settings) {
      const waiting = yield* get<{ number: number; body: string; chars: number }>(
        `SELECT number, body, chars FROM job WHERE ${OF_DOCUMENT}`,
        { accountId: job.accountId, name: job.name },
      );
      if (waiting === undefined) {
        const [refused] = yield* refusals([job]);
        if (refused !== undefined) throw refused;
        yield* insert([job]);
        return;
      }
      const { body, keepsPages } = mergeJobs(waiting.body, job.body, settings);
      const [refused] = yield* refusals([{ ...job, body }], { jobs: 1, chars: waiting.chars });
      if (refused !== undefined) throw refused;
      const { line, fileToken = null, nowMs } = job;
      const { length: chars } = body;
      yield* run(OVERTAKE, { number: waiting.number, line, body, chars, keepsPages, fileToken, nowMs });
    },
  } satisfies Partial<QueueSteps>;
}

function* refusals(
  jobs: readonly NewJob[],
  replaced = { jobs: 0, chars: 0 },
): ReturnType<QueueSteps["refusals"]> {
  const [first] = jobs;
  if (first === undefined) return [];
  const { queue, accountId } = first;
  const enough = 1 + Math.max(...jobs.map(({ jobsMax }) => jobsMax));
  const found = yield* get<{ jobs: number; ownJobs: number; chars: number; ownChars: number }>(TOTALS, {
    queue,
    accountId,
    enough,
  });
  const waiting = found ?? { jobs: 0, ownJobs: 0, chars: 0, ownChars: 0 };
  let [added, addedChars] = [-replaced.jobs, -replaced.chars];
  return jobs.map(({ jobsMax, charsMax = Infinity, body: { length: chars } }) => {
    const fitsJobs =
      replaced.jobs > 0 || fitsShare(jobsMax, waiting.jobs + added, waiting.ownJobs + added, 1);
    const fitsChars = fitsShare(charsMax, waiting.chars + addedChars, waiting.ownChars + addedChars, chars);
    if (!fitsJobs || !(fitsChars || chars <= replaced.chars))
      return new KbsyncError("too much work is waiting", { code: "queue_full", retryable: true });
    added += 1;
    addedChars += chars;
    return undefined;
  });
}

function* insert(jobs: readonly NewJob[]): Steps<void> {
  yield jobs.map((job) => ({ text: INSERT, parameters: rowOf(job), returns: "changes" }) as const);
}

const FIGURES = `
  SELECT count(*) FILTER (WHERE is_failed = false) AS waiting, count(*) FILTER (WHERE is_failed = true) AS failed,
    min(created_ms) FILTER (WHERE is_failed = false) AS "oldestMs",
    count(*) FILTER (WHERE is_failed = false
      AND (due_ms <= CAST(@beforeMs AS bigint) OR worker IS NOT NULL AND is_working = false)
      AND created_ms <= CAST(@beforeMs AS bigint) AND waits_from_ms <= CAST(@beforeMs AS bigint)) AS overdue,
    count(*) FILTER (WHERE is_failed = false AND file_token IS NULL AND line LIKE '/%'
      AND due_ms <= CAST(@nowMs AS bigint)) AS texts
  FROM job WHERE queue = @queue AND (CAST(@accountId AS text) IS NULL OR account_id = @accountId)`;

const LOOKUPS = {
  *documentOf({ number, token }) {
    return yield* get(`SELECT account_id AS "accountId", name AS id FROM job WHERE ${OF_LEASE}`, {
      number,
      token,
    });
  },
  removeChange: (accountId, name) => run(`DELETE FROM job WHERE ${OF_DOCUMENT}`, { accountId, name }),
  *hasChange(accountId, name) {
    return (yield* get(`SELECT 1 FROM job WHERE ${OF_DOCUMENT}`, { accountId, name })) !== undefined;
  },
  *change({ accountId, id: name, nowMs }) {
    return yield* get<WaitingJob & { readonly dueMs: number }>(
      `SELECT ${WAITING}, due_ms AS "dueMs" FROM job WHERE ${OF_DOCUMENT}`,
      { accountId, name, nowMs },
    );
  },
  *pagesOf({ number, token }) {
    const found = yield* get<{ pages: string | null }>(`SELECT pages FROM job WHERE ${OF_LEASE}`, {
      number,
      token,
    });
    return found?.pages ?? undefined;
  },
  *nextDueMs(queue, nowMs) {
    const next = yield* get<{ dueMs: number | null }>(
      `SELECT min(due_ms) AS "dueMs" FROM job WHERE queue = @queue AND is_failed = false AND due_ms > CAST(@nowMs AS bigint)`,
      { queue, nowMs },
    );
    return next?.dueMs ?? undefined;
  },
  *figures(queue, accountId, nowMs = 0) {
    const found = yield* get<QueueFigures>(FIGURES, {
      queue,
      accountId: accountId ?? null,
      nowMs,
      beforeMs: nowMs - OVERDUE_MS,
    });
    return found ?? { waiting: 0, failed: 0, oldestMs: null, overdue: 0, texts: 0 };
  },
} satisfies Partial<QueueSteps>;

function leaseSteps({ lock, skipLocked }: QueueDialect) {
  const lease = (locking: string): string => `
    UPDATE job SET crashes = crashes + CASE WHEN worker <> @worker AND is_working THEN 1 ELSE 0 END, worker = @worker,
      token = token + 1, due_ms = CAST(@nowMs AS bigint) + ${LEASE_MS}, waits_from_ms = @nowMs, is_working = true
    WHERE number = (SELECT number FROM job
      WHERE number = @number AND is_failed = false
        AND (worker = @worker OR due_ms <= CAST(@nowMs AS bigint) OR worker IS NULL AND CAST(@isEarly AS boolean))
        AND NOT (queue IN (${ORDERED.join()}) AND EXISTS (SELECT 1 FROM job AS earlier
          WHERE earlier.queue = job.queue AND earlier.line = job.line AND earlier.is_failed = false AND earlier.number < job.number))
      ${locking})
    RETURNING number, account_id AS "accountId", owner_id AS "ownerId", line, name, octet_length(body) AS "bodyBytes",
      changed_ms AS "changedMs", crashes, token, body, created_ms AS "createdMs", attempts`;
  const renew = (locking: string): string => `
    UPDATE job SET due_ms = CAST(@nowMs AS bigint) + ${LEASE_MS}, is_working = CAST(@isWorking AS boolean),
      waits_from_ms = CASE WHEN CAST(@isWorking AS boolean) THEN @nowMs ELSE waits_from_ms END
    WHERE number = (SELECT number FROM job WHERE number = @number AND token = @token AND worker = @worker ${locking})
    RETURNING number`;

  return {
    *lease({ isEarly = false, waits = false, ...request }) {
      return yield* get<LeasedJob>(lease(waits ? lock : skipLocked), { ...request, isEarly });
    },
    *renew({ leases, waits = false, ...renewal }) {
      const sets = leases.map(({ number, token }) => ({ ...renewal, number, token }));
      const renewed = yield* each<{ number: number }>(renew(waits ? lock : skipLocked), sets);
      return renewed.map(({ number }) => number);
    },
    *release(worker) {
      yield* run(
        `UPDATE job SET worker = NULL, due_ms = 0
        WHERE number IN (SELECT number FROM job WHERE worker = @worker ${skipLocked})`,
        { worker },
      );
    },
    *resume(worker, nowMs, isAlone) {
      if (isAlone) {
        yield* run(
          `UPDATE job SET crashes = crashes + CASE WHEN is_working THEN 1 ELSE 0 END, worker = NULL, due_ms = 0
          WHERE worker IS NOT NULL AND worker <> @worker`,
          { worker },
        );
      }
      yield* run(
        `UPDATE job SET due_ms = 0 WHERE number IN (SELECT number FROM job
          WHERE due_ms > 0 AND CASE WHEN worker IS NULL THEN waits_from_ms ELSE due_ms - ${LEASE_MS} END > CAST(@fromMs AS bigint)
          ${skipLocked})`,
        { fromMs: nowMs + CLOCKS_APART_MS },
      );
    },
  } satisfies Partial<QueueSteps>;
}

const ENDS = {
  keepPages: ({ number, token }, pages) =>
    changed(
      `UPDATE job SET pages = CASE WHEN (SELECT coalesce(sum(octet_length(other.pages)), 0) FROM job AS other
          WHERE other.account_id = job.account_id AND other.pages IS NOT NULL AND other.number <> job.number)
        + octet_length(CAST(@pages AS text)) <= ${PAGES_BYTES_MAX} THEN @pages ELSE pages END
      WHERE ${OF_LEASE}`,
      { number, token, pages },
    ),
  noteReading: ({ number, token }, warning) =>
    changed(
      `UPDATE resource SET warning = @warning
        WHERE status = 'queued' AND (version = 0 OR warning IS NULL OR warning LIKE '%${STILL_READ}')
        AND (account_id, id) = (SELECT account_id, name FROM job WHERE ${OF_LEASE})`,
      { number, token, warning },
    ),
  complete: ({ number, token }) => changed(`DELETE FROM job WHERE ${OF_LEASE}`, { number, token }),
  postpone: ({ number, token }, { dueMs, nowMs, counts, line = null }) =>
    changed(
      `UPDATE job SET worker = NULL, due_ms = @dueMs, waits_from_ms = @nowMs, line = coalesce(CAST(@line AS text), line),
        attempts = attempts + CASE WHEN CAST(@counts AS boolean) THEN 1 ELSE 0 END
      WHERE ${OF_LEASE}`,
      { number, token, dueMs, nowMs, counts, line },
    ),
  fail: ({ number, token }) =>
    changed(`UPDATE job SET worker = NULL, is_failed = true, body = '{}', pages = NULL WHERE ${OF_LEASE}`, {
      number,
      token,
    }),
  purgeFailed: (queue, beforeMs, limit) =>
    run(
      `DELETE FROM job WHERE number IN (SELECT number FROM job
        WHERE queue = @queue AND is_failed = true AND created_ms < @beforeMs LIMIT CAST(@limit AS bigint))`,
      { queue, beforeMs, limit },
    ),
} satisfies Partial<QueueSteps>;

function* changed(text: string, parameters: Parameters): Steps<boolean> {
  return (yield* run(text, parameters)) > 0;
}

function rowOf({ ownerId = "", fileToken = null, ...job }: NewJob): Parameters {
  return { ...job, ownerId, fileToken, chars: job.body.length };
}
