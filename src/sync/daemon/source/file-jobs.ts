import type { Candidate } from "../../plan/model.ts";
import type { Send, YieldSlot } from "../../send/queue/queue.ts";
import { dropCreate } from "../../send/create.ts";
import { prepareFile, type Prepared } from "../../send/prepare.ts";
import { send } from "../../send/send.ts";
import { type Job, jobEnded, type SourceParts } from "./parts.ts";

/** Reads the file of a job and decides. Returns undefined if nothing must be sent. */
export async function prepareJob(
  { context, source, agenda: { states } }: SourceParts,
  candidate: Candidate,
): Promise<Prepared | undefined> {
  const { entry } = candidate;
  if (!states.isCurrent(entry)) return undefined;
  states.send(entry.path);
  const prepared = source.isStale(entry.path) ? undefined : await prepareFile(context, source, candidate);
  return source.isStale(entry.path) ? undefined : prepared;
}

/**
 * Writes the intent of a prepared job, inside the transaction that makes it durable. Returns what must be sent after it, or
 * dropped if it will not be.
 */
export function departJob(
  { options, context, source, agenda: { states } }: SourceParts,
  prepared: Prepared,
): Pick<Send<Job>, "run" | "drop"> {
  const { ledger } = context;
  const outgoing = prepared.write();
  const { intent } = outgoing;
  const { path } = outgoing.candidate.entry;
  // The row is `unsure` from here on.
  if (intent === undefined) states.uncount(path);
  return {
    run: (yieldSlot, isRecent) => {
      // A job gives its slot away while the service works on what it has.
      const whileRead: YieldSlot = async (wait) => {
        states.setReading(path, "all");
        try {
          return await yieldSlot(wait);
        } finally {
          states.setReading(path, undefined);
        }
      };
      const contentKind = isRecent ? "recent" : "content";
      const onPictures = (): void => {
        if (states.reading(path) === "pictures") return;
        states.setReading(path, "pictures");
        options.onChange();
      };
      return send({ ...context, yieldSlot: whileRead, onPictures, contentKind }, source, outgoing);
    },
    drop: () => {
      // It never left, so the next start need not find out what became of it.
      if (intent !== undefined) ledger.note(() => dropCreate(ledger, source, intent));
    },
  };
}

/** Records that the job of a file has ended, in whatever way. */
export function endJob(parts: SourceParts, { entry }: Candidate): void {
  const { agenda, deletes } = parts;
  // Another job may have taken its place.
  if (agenda.states.isCurrent(entry)) agenda.end(entry);
  deletes.beginPutOff(entry.path);
  jobEnded(parts);
}
