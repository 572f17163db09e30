import type { Claims } from "../../../queue/claims.ts";
import type { Transaction } from "../database/connections.ts";

/** Claims. `run` runs single statements. */
export function openClaims(run: <T>(work: (tx: Transaction) => Promise<T>) => Promise<T>): Claims {
  return {
    take: (names, holder, forMs) =>
      run(async (tx) => {
        // In the order of the names, so that two processes that claim the same ones cannot wait for each other.
        const held = await tx.all<{ readonly name: string }>(
          `INSERT INTO claim (name, holder, ends_at)
          SELECT name, @holder, clock_timestamp() + @forMs::integer * interval '1 ms'
          FROM unnest(@names::text[]) AS wanted (name) ORDER BY name
          ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, ends_at = excluded.ends_at
          WHERE claim.holder = excluded.holder OR claim.ends_at <= clock_timestamp()
          RETURNING name`,
          { names, holder, forMs },
        );
        return held.map(({ name }) => name);
      }),
    release: (names, holder) =>
      run(async (tx) => {
        await tx.run("DELETE FROM claim WHERE name = ANY (@names::text[]) AND holder = @holder", {
          names,
          holder,
        });
      }),
    sweep: (limit) =>
      run((tx) =>
        tx.run(
          `DELETE FROM claim WHERE name IN (
            SELECT name FROM claim WHERE ends_at <= clock_timestamp() LIMIT @limit FOR UPDATE SKIP LOCKED)`,
          { limit },
        ),
      ),
  };
}
