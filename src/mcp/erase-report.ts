import { randomUUID } from "node:crypto";
import { z } from "zod";
import { KbsyncError } from "../lib/failure.ts";
import type { Erased } from "../wire/daemon.ts";
import type { ErasureReport, Remainder } from "../wire/erasure.ts";
import { Cursor, cutText, fitting, NextCursor } from "./budget.ts";
import type { ToolOutput } from "./tool-result.ts";

const NAME_CHARS_SHOWN = 200;
/** Reports of which a caller may still read the rest; each has a few thousand names at most. */
const REPORTS_MAX = 32;

/** The argument that continues a report. */
export const ReportCursor = Cursor.describe(
  "next_cursor of the report, for the rest of remains. Erases nothing.",
);

/** What every erasure returns. */
export const ReportFields = {
  service: z
    .object({
      documents: z.number(),
      chunks: z.number(),
      files: z.number(),
      requests: z.number(),
      messages: z.number(),
      turns: z.number(),
      images: z.number(),
    })
    .describe("What was erased at the service."),
  machine: z
    .object({ files: z.number(), texts: z.number(), activities: z.number() })
    .nullable()
    .describe("What was erased in the ledger, trash and log of this machine; null: it was not asked."),
  remains: z
    .array(z.object({ kind: z.string(), name: z.string(), reason: z.string() }))
    .describe("What still holds the text, or may hold it."),
  remains_total: z.number(),
  next_cursor: NextCursor,
};

const Fields = z.object(ReportFields);

/** The report of an erasure, without what was erased. */
export type Report = z.infer<typeof Fields>;

type Whole = Pick<Report, "service" | "machine"> & { readonly remains: readonly Remainder[] };

/** By an id that only the caller of the erasure gets. */
const reports = new Map<string, Whole>();

/** Reports an erasure: the first page. */
export function reportOf(done: Erased | { readonly service: ErasureReport }): Report {
  const { remains, ...service } = done.service;
  const machine =
    "texts" in done ? { files: done.files, texts: done.texts, activities: done.activities } : null;
  const id = randomUUID();
  const whole = { service, machine, remains };
  reports.set(id, whole);
  for (const oldest of reports.keys()) if (reports.size > REPORTS_MAX) reports.delete(oldest);
  return pageOf(id, whole, 0);
}

/** Returns the page of a report at a cursor. Throws `cursor_invalid`. */
export function reportAt(cursor: string): Report {
  const [id = "", offset] = cursor.split(".");
  const whole = reports.get(id);
  if (whole !== undefined && /^\d{1,9}$/.test(offset ?? "")) return pageOf(id, whole, Number(offset));
  throw new KbsyncError("the cursor is of no report that is still stored", {
    code: "cursor_invalid",
    hint: "Nothing was erased by this call. If an erasure returned the cursor, it is done: `kbsync erase` on the machine of the folders names again what remains.",
  });
}

function pageOf(id: string, { remains, ...whole }: Whole, offset: number): Report {
  const page = fitting(remains.slice(offset));
  const next = offset + page.length;
  return {
    ...whole,
    remains: [...page],
    remains_total: remains.length,
    next_cursor: next < remains.length ? `${id}.${next}` : null,
  };
}

/** Returns a report as data and as text. `erased` names what was erased. */
export function reportOutput<T extends object>(
  erased: T,
  tool: string,
  report: Report,
): ToolOutput<T & Report> {
  const { service, machine, remains, next_cursor: cursor } = report;
  const counts = (of: object): string =>
    Object.entries(of)
      .map(([what, count]) => `${count} ${what}`)
      .join(", ");
  const lines = [
    `Erased ${Object.values(erased).join(", ")}. At the service: ${counts(service)}.`,
    ...(machine === null ? [] : [`On this machine: ${counts(machine)}.`]),
    ...remains.map(({ kind, name, reason }) => `Left: ${kind} ${cutText(name, NAME_CHARS_SHOWN)}: ${reason}`),
    ...(cursor === null ? [] : [`[More remains: call ${tool} with cursor ${cursor}.]`]),
  ];
  return { data: { ...erased, ...report }, text: lines.join("\n") };
}
