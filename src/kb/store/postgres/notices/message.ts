import { z } from "zod";
import type { NoticeTopic } from "../../notices.ts";

/** Longest message of PostgreSQL: 8000 bytes, less the byte at its end. */
const BYTES_MAX = 7999;

/** Announcements by topic, each with its keys. */
export type Announcements = ReadonlyMap<NoticeTopic, ReadonlySet<string>>;

/** A message from one process to the others. */
export interface Message {
  /** The process that sends it. */
  readonly from: string;
  /** Undefined: more was written than messages can name, so the others check everything. */
  readonly announced: readonly (readonly [topic: NoticeTopic, key: string])[] | undefined;
  /** Number of a message that only shows whether messages arrive. */
  readonly echo?: number | undefined;
}

const Wire = z.object({
  from: z.string(),
  announced: z
    .array(z.tuple([z.enum(["ingest", "chat", "webhook", "change", "ended"]), z.string()]))
    .optional(),
  echo: z.number().optional(),
});

/** Writes announcements as messages, each as long as PostgreSQL allows at most. A key that fits into none is left to `onMissed`. */
export function messagesOf(from: string, announcements: Announcements): readonly string[] {
  const messages: string[] = [];
  let announced: [NoticeTopic, string][] = [];
  const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value)) + 1;
  const emptyBytes = bytesOf({ from, announced });
  let bytes = emptyBytes;
  const end = (): void => {
    if (announced.length > 0) messages.push(JSON.stringify({ from, announced }));
    announced = [];
    bytes = emptyBytes;
  };
  for (const [topic, keys] of announcements) {
    for (const key of keys) {
      const entry: [NoticeTopic, string] = [topic, key];
      const more = bytesOf(entry);
      if (emptyBytes + more > BYTES_MAX) return [JSON.stringify({ from })];
      if (bytes + more > BYTES_MAX) end();
      announced.push(entry);
      bytes += more;
    }
  }
  end();
  return messages;
}

/** Writes a message that only shows whether messages arrive. */
export function echoOf(from: string, echo: number): string {
  return JSON.stringify({ from, announced: [], echo });
}

/** Reads a message; undefined: it is none of this program. */
export function readMessage(text: string | undefined): Message | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text ?? "");
  } catch {
    return undefined;
  }
  const { data } = Wire.safeParse(value);
  return data && { from: data.from, announced: data.announced, echo: data.echo };
}
