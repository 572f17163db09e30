import { linkAddress, type LinkFetch } from "../../links.ts";
import type { Records } from "../../records.ts";
import type { Transaction } from "../database/connections.ts";

/** Maximum stored link fetches; the oldest are evicted first, which costs a full response at the link's next update. */
const LINK_FETCHES_MAX = 100_000;
/** Excess fetches removed with each write: more than it adds. */
const REMOVED_MAX = 4;

/** Fetches of links inside a transaction. */
export function linksOn(tx: Transaction): Pick<Records, "linkFetch" | "noteLinkFetch"> {
  return {
    linkFetch: (accountId, url) =>
      tx.get<LinkFetch>(
        `SELECT account_id AS "accountId", url, text_sha256 AS "textSha256", etag, last_modified AS "lastModified"
        FROM link_fetch WHERE account_id = @accountId AND md5(url) = md5(@url) AND url = @url`,
        { accountId, url },
      ),
    async noteLinkFetch(fetch) {
      await forget(tx, fetch.accountId, fetch.url);
      const made = await tx.get<{ number: number }>(
        `INSERT INTO link_fetch (account_id, url, text_sha256, etag, last_modified)
        VALUES (@accountId, @url, @textSha256, @etag, @lastModified)
        ON CONFLICT (account_id, md5(url)) DO UPDATE SET url = excluded.url, text_sha256 = excluded.text_sha256, etag = excluded.etag,
          last_modified = excluded.last_modified
        RETURNING number`,
        { ...fetch },
      );
      // Numbers ascend with time, so fetches further back than the bound are too many.
      await tx.run(
        `DELETE FROM link_fetch WHERE number IN (
          SELECT number FROM link_fetch WHERE number <= @to ORDER BY number LIMIT ${REMOVED_MAX})`,
        { to: (made?.number ?? 0) - LINK_FETCHES_MAX },
      );
    },
  };
}

/** Removes the stored fetch of a link. `url` is as sent by the client. */
export function forgetLink(tx: Transaction, accountId: string, url: string): Promise<void> {
  return forget(tx, accountId, linkAddress(url));
}

async function forget(tx: Transaction, accountId: string, url: string): Promise<void> {
  await tx.run(
    "DELETE FROM link_fetch WHERE account_id = @accountId AND md5(url) = md5(@url) AND url = @url",
    {
      accountId,
      url,
    },
  );
}
