import { KbsyncError } from "../../../../lib/failure.ts";
import type { ChatRecords, StoredAgent } from "../../chat.ts";
import type { ThreadLink } from "../../thread-link.ts";
import type { Transaction } from "../database/connections.ts";
import { lockAccount } from "../queue/webhooks.ts";

const COLUMNS = 'account_id AS "accountId", id, body, created_at AS "createdAt", updated_at AS "updatedAt"';

/** Agents inside a transaction. */
export function agentsOn(
  tx: Transaction,
): Pick<ChatRecords, "addAgent" | "changeAgent" | "removeAgent" | "agent" | "agents"> {
  const agents = (accountId: string): Promise<StoredAgent[]> =>
    tx.all<StoredAgent>(
      `SELECT ${COLUMNS} FROM agent WHERE account_id = @accountId ORDER BY created_at, id`,
      {
        accountId,
      },
    );
  return {
    agents,
    agent: ({ accountId, id }) =>
      tx.get<StoredAgent>(`SELECT ${COLUMNS} FROM agent WHERE account_id = @accountId AND id = @id`, {
        accountId,
        id,
      }),
    async addAgent(agent, agentsMax) {
      await lockAccount(tx, agent.accountId);
      const existing = await agents(agent.accountId);
      if (existing.some(({ id }) => id === agent.id))
        throw new KbsyncError("an agent with that id already exists", { code: "agent_exists" });
      if (existing.length >= agentsMax) {
        throw new KbsyncError(`an account has at most ${agentsMax} agents`, {
          code: "too_many_agents",
          hint: "Remove one first.",
        });
      }
      await tx.run(
        `INSERT INTO agent (account_id, id, body, created_at, updated_at)
        VALUES (@accountId, @id, @body, @createdAt, @updatedAt)`,
        { ...agent },
      );
    },
    changeAgent: async (change) =>
      (await tx.run(
        `UPDATE agent SET body = @body, updated_at = @updatedAt
        WHERE account_id = @accountId AND id = @id AND body = @expectedBody`,
        { ...change },
      )) > 0,
    async removeAgent({ accountId, id, keepsThreads }) {
      const at = { accountId, id };
      if ((await tx.run("DELETE FROM agent WHERE account_id = @accountId AND id = @id", at)) === 0)
        return false;
      if (keepsThreads) return true;
      const threads = "(SELECT number FROM chat_thread WHERE account_id = @accountId AND agent_id = @id)";
      await tx.run(`DELETE FROM chat_turn WHERE thread IN ${threads}`, at);
      await tx.run(`DELETE FROM chat_image WHERE thread IN ${threads}`, at);
      await tx.run("DELETE FROM chat_thread WHERE account_id = @accountId AND agent_id = @id", at);
      return true;
    },
  };
}

/** Throws `agent_gone` if a stored agent has been removed, or replaced by another one of its id. It stays until the transaction ends. */
export async function refuseGone(
  tx: Transaction,
  {
    accountId,
    agentId,
    ...at
  }: Pick<ThreadLink, "accountId" | "agentId" | "isStoredAgent" | "agentCreatedAt">,
): Promise<void> {
  if (!at.isStoredAgent) return;
  const found = await tx.get<{ createdAt: string }>(
    `SELECT created_at AS "createdAt" FROM agent WHERE account_id = @accountId AND id = @agentId FOR KEY SHARE`,
    { accountId, agentId },
  );
  if (found !== undefined && found.createdAt === (at.agentCreatedAt ?? found.createdAt)) return;
  throw new KbsyncError("the agent has been removed", { code: "agent_gone", subject: agentId });
}
