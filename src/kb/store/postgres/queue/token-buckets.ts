import type { TokenBuckets } from "../../token-buckets.ts";
import type { Transaction } from "../database/connections.ts";

/** Time until a bucket is full; never more than an empty one takes, whatever clock the server had before a failover. */
const UNTIL_FULL = `least(
  greatest(token_bucket.full_at - statement_timestamp(), interval '0'),
  @burst::float8 * @tokenMs::float8 * interval '1 ms')`;

/** Tokens that a bucket gives. The last term is the rounding of times to microseconds. */
const GIVEN = `least(
  @wanted::integer,
  floor(@burst::float8 - extract(epoch FROM ${UNTIL_FULL}) * 1000 / @tokenMs::float8 + 0.000001)::integer)`;

/**
 * Token buckets, each stored as the time at which it is full (GCRA, ITU-T I.371). `run` runs single statements. The time of a statement
 * is the same in all its terms; one that waited for another comes a little early, so it finds fewer tokens, never more.
 */
export function openTokenBuckets(
  run: <T>(work: (tx: Transaction) => Promise<T>) => Promise<T>,
): TokenBuckets {
  return {
    take: (bucket, { perMinute, burst }, wanted) =>
      run(async (tx) => {
        const tokenMs = 60_000 / perMinute;
        const given = await tx.get<{ readonly tokens: number; readonly untilFullMs: number }>(
          `INSERT INTO token_bucket (name, full_at, given)
          SELECT @bucket, statement_timestamp() + given * @tokenMs::float8 * interval '1 ms', given
          FROM (SELECT least(@wanted::integer, @burst::integer) AS given) AS first
          ON CONFLICT (name) DO UPDATE SET given = ${GIVEN},
            full_at = statement_timestamp() + ${UNTIL_FULL} + ${GIVEN} * @tokenMs::float8 * interval '1 ms'
          RETURNING given AS tokens,
            (extract(epoch FROM full_at - statement_timestamp()) * 1000)::float8 AS "untilFullMs"`,
          { bucket, burst, wanted, tokenMs },
        );
        const { tokens, untilFullMs } = given ?? { tokens: 0, untilFullMs: burst * tokenMs };
        return { tokens, waitMs: Math.max(0, untilFullMs - (burst - 1) * tokenMs) };
      }),
    sweep: (limit) =>
      run((tx) =>
        tx.run(
          `DELETE FROM token_bucket WHERE name IN (
            SELECT name FROM token_bucket WHERE full_at <= statement_timestamp() LIMIT @limit FOR UPDATE SKIP LOCKED)`,
          { limit },
        ),
      ),
  };
}
