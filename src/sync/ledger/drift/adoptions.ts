import { z } from "zod";
import type { RelativePath } from "../../plan/model.ts";
import type { Meta } from "../database/meta.ts";
import type { Sqlite } from "../database/open.ts";

/** The progress of adoption for each source, and whether its rows can be relied on. */
export interface Adoptions {
  isAdopted(source: number): boolean;
  setAdopted(source: number, adopted: boolean): void;
  unsearched(source: number): Unsearched;
  setUnsearched(source: number, unsearched: Unsearched): void;
  /** The comparisons that a source still needs after its adoption; undefined: none. */
  recheck(source: number): Recheck | undefined;
  setRecheck(source: number, recheck: Recheck | undefined): void;
  /**
   * Records that a source has another folder. If it was adopted, its rows are then compared with the service's list, as
   * `recover` does. Null: all sources.
   */
  distrust(source: number | null): void;
  /** Reports whether a source's rows are those of an old ledger. Adoption ends that. */
  isDistrusted(source: number): boolean;
}
const UnsearchedParts = z.object({ parts: z.array(z.string()), sinceMs: z.number() });
/**
 * Parts of a source's folder that were unreadable when its files were compared with the service's list, and since when.
 * "" is the whole folder. No part means that nothing is left, or that there was no comparison yet.
 */
export interface Unsearched {
  readonly parts: readonly RelativePath[];
  readonly sinceMs: number;
}

/** No part is left. */
export const NOTHING_UNSEARCHED: Unsearched = { parts: [], sinceMs: 0 };

const RecheckRecord = z
  .object({
    boundMs: z.number(),
    seen: z.array(z.object({ docId: z.string(), updatedMs: z.number().optional() })),
    sinceMs: z.number(),
    looks: z.number(),
    clean: z.number(),
  })
  .transform(({ looks: checks, ...rest }) => ({ ...rest, checks }));
/** A resource as a list showed it. The list may be stale. */
export interface SeenResource {
  readonly docId: string;
  readonly updatedMs?: number | undefined;
}

/**
 * The remaining comparisons of a source that was adopted by lists that may have been stale or short. It is compared
 * again after they have caught up.
 */
export interface Recheck {
  /**
   * When the source was adopted, by the service's clock. Older resources were made under a former ledger, or by others.
   */
  readonly boundMs: number;
  /** Resources that the adoption saw and did not touch, as its list showed them. */
  readonly seen: readonly SeenResource[];
  /** When the source was last compared, by our clock. */
  readonly sinceMs: number;
  /** Number of comparisons since the adoption, and how many of the last ones found nothing. */
  readonly checks: number;
  readonly clean: number;
}

/** Prepares the statements over adoptions. */
export function prepareAdoptions(db: Sqlite, meta: Meta): Adoptions {
  const isAdopted = db.prepare<[number], number>("SELECT 1 FROM adopted WHERE source = ?").pluck();
  const adopt = db.prepare("INSERT OR IGNORE INTO adopted VALUES (?)");
  const unadopt = db.prepare("DELETE FROM adopted WHERE source = ?");
  const distrust = db.prepare(
    `INSERT INTO meta SELECT 'distrusted ' || source, '1' FROM
       (SELECT source FROM adopted UNION SELECT sources.id FROM sources JOIN meta ON name = 'unsearched ' || sources.id)
     WHERE coalesce(source = @source, true) ON CONFLICT DO NOTHING`,
  );
  const forgetUnsearched = db.prepare(
    "DELETE FROM meta WHERE coalesce(name = 'unsearched ' || CAST(@source AS INTEGER), name GLOB 'unsearched *')",
  );
  const unadoptAll = db.prepare("DELETE FROM adopted WHERE coalesce(source = @source, true)");
  const trust = db.prepare("DELETE FROM meta WHERE name = 'distrusted ' || CAST(? AS INTEGER)");
  return {
    isAdopted: (source) => isAdopted.get(source) !== undefined,
    setAdopted: (source, adopted) => {
      (adopted ? adopt : unadopt).run(source);
      if (adopted) trust.run(source);
    },
    unsearched: (source) => {
      const text = meta.get(`unsearched ${source}`);
      return text === undefined ? NOTHING_UNSEARCHED : UnsearchedParts.parse(JSON.parse(text));
    },
    setUnsearched: (source, { parts, sinceMs }) => {
      if (parts.length === 0) meta.remove(`unsearched ${source}`);
      else meta.set(`unsearched ${source}`, JSON.stringify({ parts, sinceMs }));
    },
    recheck: (source) => {
      const text = meta.get(`recheck ${source}`);
      return text === undefined ? undefined : RecheckRecord.parse(JSON.parse(text));
    },
    setRecheck: (source, recheck) => {
      if (recheck === undefined) {
        meta.remove(`recheck ${source}`);
        return;
      }
      const { checks: looks, ...rest } = recheck;
      meta.set(`recheck ${source}`, JSON.stringify({ ...rest, looks }));
    },
    distrust: (source) => {
      distrust.run({ source });
      unadoptAll.run({ source });
      forgetUnsearched.run({ source });
    },
    isDistrusted: (source) => meta.get(`distrusted ${source}`) !== undefined,
  };
}
