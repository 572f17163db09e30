import type { QueueName } from "../queue/queue.ts";

/** The topics that a process may announce: a job in a queue, a change of an account's documents, or the end of a job of a document. */
export type NoticeTopic = QueueName | "change" | "ended";

/** Receives what other processes announce. */
export interface NoticeListener {
  /** `key`: the id of the account, or of a document (`jobKey`) whose entry ended or was replaced. */
  onNotice(this: void, topic: NoticeTopic, key: string): void;
  /** Called where others may have written something that was not announced: check everything. */
  onMissed(this: void): void;
}

/**
 * Announcements between the processes that use one store, so that they need not look for each other's writes all the time. An
 * announcement may be lost; then `onMissed` follows, within seconds.
 */
export interface Notices {
  /** Announces to the other processes something that is committed. Announcements of some milliseconds are sent together. */
  announce(this: void, topic: NoticeTopic, key: string): void;
  /** Starts to listen. Called once at most. */
  listen(this: void, listener: NoticeListener): void;
}
