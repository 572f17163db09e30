import { newHexId } from "../../../lib/ids.ts";
import type { UpgradeListener } from "../../../lib/upgrade.ts";
import { TIERS } from "../../../wire/constants.ts";
import { accountOf, deriveMethods, type Inside, type MethodsOf } from "../methods.ts";
import type { SameTransaction } from "../request-note.ts";
import { prepareAnswerNotes, type AnswerNotes } from "./database/answer-notes.ts";
import { prepareChatWrites } from "./chat/chat-writes.ts";
import { openForWriting } from "./database/connection.ts";
import { openGroupCommit } from "./group-commit.ts";
import { openMerges } from "./merges.ts";
import { prepareAccountWrites } from "./accounts/accounts.ts";
import { prepareSessionWrites } from "./accounts/sessions.ts";
import { prepareFileWrites } from "./resources/files.ts";
import { prepareServingWrites, type ServingWrites } from "./vectors/serving.ts";
import { prepareVectorWrites } from "./vectors/vector-writes.ts";
import { prepareCodeWrites } from "./vectors/code-writes.ts";
import { prepareQueueWrites } from "./queue/queue.ts";
import { prepareWebhookWrites } from "./queue/webhook-writes.ts";
import { prepareErasures } from "./resources/erasures.ts";
import { prepareRebuild } from "./resources/rebuild.ts";
import { prepareResourceWrites } from "./resources/writes.ts";
import { prepareWordWrites } from "./words/word-writes.ts";

/** The only writer of a store file. */
export interface Writer extends MethodsOf<"write" | "free"> {
  /** Completes `serveComplete`. */
  serve(this: void, argument: Parameters<ServingWrites["serve"]>[0]): Promise<number>;
  /** See `Store.scrub`. */
  scrub(this: void): Promise<void>;
  /** Rebuilds the damaged parts of the index of words. */
  rebuild(this: void): Promise<void>;
  /** Commits waiting writes, checkpoints the log and closes the file. */
  close(this: void): Promise<void>;
}

/** Opens the store file. Blocks its thread, so it needs one of its own. Notifies `listener` of an upgrade. */
export function openWriter(path: string, listener: UpgradeListener = {}): Writer {
  const newId = (): string => newHexId(Date.now());
  const db = openForWriting(path, listener);
  const words = prepareWordWrites(db);
  const codes = prepareCodeWrites(db);
  const vectors = prepareVectorWrites(db, codes);
  const files = prepareFileWrites(db);
  const notes = prepareAnswerNotes(db);
  const accounts = prepareAccountWrites(db);
  const queue = prepareQueueWrites(db);
  const resources = prepareResourceWrites(db, words, vectors, queue, notes);
  const webhooks = prepareWebhookWrites(db, queue);
  const chat = prepareChatWrites(db, queue, files.addFile);
  const serving = prepareServingWrites(db, codes);
  const erasures = prepareErasures(db);
  const { enqueue, compact, close } = openGroupCommit(db, path);
  const merges = openMerges([words, codes], prepareRebuild(db, resources, words), enqueue);

  /** Notes the request with the resource that it created or changed. */
  function withNote<R extends Parameters<AnswerNotes["resource"]>[0] | undefined>(
    written: R,
    sameTransaction: SameTransaction | undefined,
  ): R {
    if (written !== undefined && sameTransaction?.request !== undefined)
      notes.resource(written, sameTransaction.request);
    return written;
  }

  const writes: Inside<"write" | "free"> = {
    records: {
      ...accounts,
      ...prepareSessionWrites(db),
      ...files,
      ...webhooks,
      ...chat,
      ensureAccount: (name) => accounts.ensureAccount(name, [newId(), ...TIERS.map(() => newId())]),
      createResource: (resource, chunking, sameTransaction) => ({
        ...withNote(resources.create(resource, chunking), sameTransaction),
        content: "",
      }),
      updateResource: (change, chunking, sameTransaction) =>
        withNote(resources.update(change, chunking, sameTransaction), sameTransaction),
      enqueueCreate: (resource, job, sameTransaction) => ({
        ...withNote(resources.enqueueCreate(resource, job), sameTransaction),
        content: "",
      }),
      enqueueUpdate: (at, job, sameTransaction) =>
        withNote(resources.enqueueUpdate(at, job), sameTransaction),
      failJob: resources.failJob,
      purgeDeleted: resources.purgeDeleted,
      deleteResource: (at) => resources.remove(at),
      ...erasures,
      addFile: (file, sameTransaction) => {
        files.addFile(file);
        if (sameTransaction?.thread !== undefined) chat.linkImage(sameTransaction.thread, file.token);
        if (sameTransaction?.request !== undefined) notes.file(file, sameTransaction.request);
      },
      addQuestion: (job, sameTransaction) => {
        queue.put(job);
        if (sameTransaction?.request !== undefined)
          notes.question(job.accountId, job.name, sameTransaction.request);
      },
      sweepAnswers: notes.sweep,
    },
    queue,
    index: { ...vectors, ...serving },
  };

  return {
    ...deriveMethods(
      ["write", "free"],
      writes,
      (run, method) =>
        (...given) =>
          merges.after(
            enqueue(() => run(...given), {
              account: accountOf(method, given),
              frees: method.kind === "free",
            }),
          ),
    ),
    serve: (argument) => enqueue(() => serving.serve(argument)),
    scrub: shareRuns(async () => {
      await merges.purge();
      compact();
    }),
    rebuild: merges.rebuild,
    close: () => {
      merges.close();
      return close();
    },
  };
}

/** Runs work once for all callers that wait for its next start. */
function shareRuns(work: () => Promise<void>): () => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  let next: Promise<void> | undefined;
  const start = (): Promise<void> => {
    next = undefined;
    return work();
  };
  return () => (next ??= last = last.then(start, start));
}
