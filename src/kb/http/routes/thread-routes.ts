import type { FastifyInstance } from "fastify";
import { ROUTES } from "../../../wire/routes.ts";
import {
  ThreadEndAnswer,
  ThreadName,
  ThreadsAnswer,
  ThreadsQuery,
  TurnsAnswer,
  TurnsQuery,
} from "../../../wire/threads.ts";
import { listThreads, readTurns, removeThread } from "../../chat/threads.ts";
import { addOperation, answer } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";
import { readInput } from "../body/validate.ts";

const TAG = "Chat";

/**
 * Adds the operations on threads of the caller's account (additions). A thread's id opens it: a key with the scope `chat` can ask
 * further in any thread whose id it knows. The list, which shows the ids of others, needs `admin`.
 */
export function addThreadRoutes(server: FastifyInstance, parts: HttpParts): void {
  const { records } = parts.kb;

  addOperation(server, parts, {
    method: "GET",
    url: ROUTES.threads,
    scope: "admin",
    doc: {
      summary: "Lists an agent's threads, the last used first.",
      tag: TAG,
      query: ThreadsQuery,
      answers: { 200: ThreadsAnswer },
    },
    handle: async (request, accountId) => {
      const page = await listThreads(records, accountId, readInput(ThreadsQuery, request.query));
      return answer(200, "Threads fetched successfully", page);
    },
  });

  addOperation(server, parts, {
    method: "GET",
    url: `${ROUTES.threads}/turns`,
    scope: "chat",
    doc: {
      summary: "Returns the questions and answers of a thread, the newest page first.",
      tag: TAG,
      query: TurnsQuery,
      answers: { 200: TurnsAnswer },
    },
    handle: async (request, accountId) => {
      const page = await readTurns(records, accountId, readInput(TurnsQuery, request.query));
      return answer(200, "Thread fetched successfully", page);
    },
  });

  addOperation(server, parts, {
    method: "DELETE",
    url: ROUTES.threads,
    scope: "chat",
    doc: {
      summary: "Removes a thread: the agent forgets its questions, answers and images.",
      tag: TAG,
      query: ThreadName,
      answers: { 200: ThreadEndAnswer },
    },
    handle: async (request, accountId) => {
      const name = await removeThread(records, accountId, readInput(ThreadName, request.query));
      return answer(200, "Thread deleted successfully", name);
    },
  });
}
