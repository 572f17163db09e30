import { parentPort } from "node:worker_threads";
import type { LocatedText } from "../../../formats/markup/located-text.ts";
import { answerCalls } from "../../../lib/worker-calls.ts";
import { structuredText } from "./structured-text.ts";
import type { TextForm } from "./text-form.ts";

const METHODS = {
  layOut: ({ text, form }: { readonly text: string; readonly form: TextForm }): LocatedText =>
    structuredText(text, form),
};

/** The methods of the thread of `StructuredReader`. */
export type StructuredMethods = typeof METHODS;

if (parentPort === null) throw new Error("structured-worker.ts runs only as a worker thread");

answerCalls(parentPort, METHODS);
