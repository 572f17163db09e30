import type { QueueName } from "../queue/queue.ts";
import type { Store } from "./store.ts";

/** Writes that may put a job into a queue. */
const WRITES = {
  ingest: ["enqueueCreate", "enqueueUpdate"],
  chat: ["addQuestion"],
  webhook: [
    "createResource",
    "updateResource",
    "deleteResource",
    "failJob",
    "addDelivery",
    "addTurn",
    "replayDeliveries",
  ],
} as const satisfies Record<QueueName, readonly (keyof Store)[]>;

type Write = (...given: never[]) => Promise<unknown>;

/** Returns the same store, which notifies `listener` of every write that may have put a job into the queue `topic`. */
export function onCommit(store: Store, listener: (topic: QueueName) => void): Store {
  const notifying = (topic: QueueName): [string, Write][] =>
    WRITES[topic].map((name) => {
      const write: Write = store[name];
      return [
        name,
        async (...given) => {
          const result = await write(...given);
          listener(topic);
          return result;
        },
      ];
    });
  const writes = [...notifying("ingest"), ...notifying("chat"), ...notifying("webhook")];
  return { ...store, ...Object.fromEntries(writes) };
}
