import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { brake, type BrakeFacts, mayHold } from "../../../src/sync/plan/brakes.ts";
import { decide, type ReadFacts, sameShape } from "../../../src/sync/plan/decide.ts";
import type {
  Difference,
  FileState,
  KnownFile,
  LedgerFile,
  Scan,
  Shape,
} from "../../../src/sync/plan/model.ts";
import { followMoves, pairByHash, sameIdentity } from "../../../src/sync/plan/moves.ts";
import { reconcile } from "../../../src/sync/plan/reconcile.ts";
import { scopeTest } from "../../../src/sync/plan/scope.ts";
import { DELAY_MS_MAX, delayMs, narrow, parkMs, widen } from "../../../src/sync/plan/retry.ts";
import { findSourceMoves, type LostSource, type NewSource } from "../../../src/sync/plan/source-moves.ts";
import { openChecks } from "../../../src/sync/daemon/agenda/checks.ts";
import { LOOK_MS } from "../../../src/sync/plan/timing.ts";

/** Laws of the pure functions. Each title says what would break without it. */

const KEY = 7;
const RUNS = { numRuns: 300 };

const PATHS = ["a", "b", "c", "d/a", "d/b", "d/e/a", "d/e/b", "f/a"] as const;
const STATES: readonly FileState[] = ["agreed", "unsure", "failed", "skipped", "parked", "held", "doomed"];

interface Face {
  readonly path: string;
  readonly ino: number;
  readonly sizeBytes: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
}

/** An arbitrary file. Few values, so that equal ones are common. */
const face = (inodes: number): fc.Arbitrary<Face> =>
  fc.record({
    path: fc.constantFrom(...PATHS),
    ino: fc.integer({ min: 1, max: inodes }),
    sizeBytes: fc.constantFrom(0, 5, 6),
    mtimeMs: fc.constantFrom(1, 2),
    ctimeMs: fc.constantFrom(1, 2),
  });
const disks = (inodes = 6): fc.Arbitrary<Face[]> =>
  fc.uniqueArray(face(inodes), { selector: ({ path }) => path });
/** A disk without hard links. */
const plainDisks = fc
  .uniqueArray(face(20), { selector: ({ path }) => path })
  .map((faces) => faces.filter(({ ino }, index) => faces.findIndex((other) => other.ino === ino) === index));

/** Rows as a ledger holds them: living ones have a path each; held ones may share one and always have a resource. */
const rowsOf = (states: readonly FileState[], inodes = 6): fc.Arbitrary<KnownFile[]> =>
  fc
    .array(
      fc.record({
        face: face(inodes),
        state: fc.constantFrom(...states),
        owned: fc.boolean(),
        rulesKey: fc.constantFrom(KEY, KEY, KEY, 8),
      }),
      { maxLength: 10 },
    )
    .map((list) => {
      const taken = new Set<string>();
      return list.flatMap(({ face: seen, state, owned, rulesKey }, index) => {
        const isHeld = state === "held" || state === "doomed";
        if (!isHeld && taken.has(seen.path)) return [];
        if (!isHeld) taken.add(seen.path);
        const hasDoc = isHeld || state === "agreed" || state === "unsure" || (owned && state !== "skipped");
        return [{ ...seen, id: index + 1, state, rulesKey, docId: hasDoc ? `doc${index + 1}` : null }];
      });
    });

/** A scan of a disk. Files of inode 5 are of a kind that is not taken, those of inode 6 are too large. */
const scanOf = (disk: readonly Face[], more: Partial<Scan> = {}): Scan => ({
  root: { dev: 1, ino: 1 },
  entries: disk.filter(({ ino }) => ino < 5 || ino > 6),
  skipped: disk.filter(({ ino }) => ino === 5).map((entry) => ({ entry, reason: "kind" })),
  refused: disk.filter(({ ino }) => ino === 6).map(({ path }) => ({ path, reason: "large" })),
  unreadable: [],
  scope: undefined,
  ...more,
});
const options = { rulesKey: KEY, retryParked: true };

/** A difference in words, sorted. */
const words = (difference: Difference): string[] =>
  [
    ...difference.candidates.map(
      ({ entry, known, from }) => `read ${entry.path} #${known?.id ?? "new"} from ${from ?? "-"}`,
    ),
    ...difference.moves.map(({ known, entry }) => `move #${known.id} to ${entry.path}`),
    ...difference.returned.map(({ id }) => `returned #${id}`),
    ...difference.gone.map(({ id }) => `gone #${id}`),
    ...difference.forgotten.map(({ id }) => `forgotten #${id}`),
    ...difference.refused.map(({ path, known }) => `refused ${path} #${known?.id ?? "new"}`),
    ...difference.skipped.map(({ entry, known }) => `skipped ${entry.path} #${known?.id ?? "new"}`),
  ].toSorted();

/** The ledger after a difference is applied. */
const applied = (difference: Difference, before: readonly KnownFile[]): KnownFile[] => {
  const lost = new Set([...difference.gone, ...difference.forgotten].map(({ id }) => id));
  const after = new Map(before.filter(({ id }) => !lost.has(id)).map((row) => [row.id, row]));
  let id = 1000;
  const next = (): number => (id += 1);
  for (const row of difference.returned) after.set(row.id, { ...row, state: "agreed" });
  for (const { known, entry } of difference.moves) after.set(known.id, { ...known, path: entry.path });
  for (const { entry, known } of difference.candidates) {
    const row = known ?? { id: next(), docId: null };
    const done = { state: "agreed", rulesKey: KEY, docId: row.docId ?? `new${row.id}` } as const;
    after.set(row.id, { ...entry, ...done, id: row.id });
  }
  for (const { path, known } of difference.refused) {
    const row = known ?? { id: next(), docId: null };
    const unknown = { sizeBytes: 0, mtimeMs: 0, ctimeMs: 0, ino: 0 };
    after.set(row.id, { ...unknown, path, id: row.id, docId: row.docId, state: "failed", rulesKey: KEY });
  }
  for (const { entry, known } of difference.skipped) {
    const row = known?.id ?? next();
    after.set(row, { ...entry, id: row, docId: null, state: "skipped", rulesKey: KEY });
  }
  return [...after.values()];
};

const isHeldState = ({ state }: KnownFile): boolean => state === "held" || state === "doomed";
const below = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`);
const shuffled = <T>(items: readonly T[], seed: readonly number[]): T[] =>
  items
    .map((item, index) => ({ item, key: seed[index % seed.length] ?? 0, index }))
    .toSorted((a, b) => a.key - b.key || b.index - a.index)
    .map(({ item }) => item);
const seeds = fc.array(fc.integer(), { minLength: 1, maxLength: 10 });

describe("laws of reconcile", () => {
  it("idempotent: when a plan is done, planning again plans nothing, so that running again sends nothing", () => {
    fc.assert(
      fc.property(disks(), rowsOf(STATES), (disk, rows) => {
        const difference = reconcile(scanOf(disk), rows, options);
        const again = reconcile(scanOf(disk), applied(difference, rows), options);
        // A refusal is reported each time, and there is nothing to send.
        expect(words({ ...again, refused: [] })).toEqual([]);
      }),
      RUNS,
    );
  });

  it("complete: a ledger to which a plan is applied holds exactly what the disk holds, a living row a path", () => {
    fc.assert(
      fc.property(disks(), rowsOf(STATES), (disk, rows) => {
        const after = applied(reconcile(scanOf(disk), rows, options), rows);
        const paths = after.map(({ path }) => path).toSorted();
        expect(paths).toEqual(disk.map(({ path }) => path).toSorted());
        const docs = after.flatMap(({ docId }) => docId ?? []);
        expect(new Set(docs).size).toBe(docs.length);
      }),
      RUNS,
    );
  });

  it("order-free: the order in which disk and ledger are read decides nothing", () => {
    const rowsOften = fc.oneof(rowsOf(STATES), rowsOf(["held", "held", "doomed", "agreed"], 3));
    fc.assert(
      fc.property(disks(), rowsOften, seeds, (disk, rows, seed) => {
        const one = reconcile(scanOf(disk), rows, options);
        const other = reconcile(scanOf(shuffled(disk, seed)), shuffled(rows, seed), options);
        expect(words(other)).toEqual(words(one));
      }),
      RUNS,
    );
  });

  it("local: a partial scan finds what the whole one finds in its scope, as long as no file crosses its edge", () => {
    const scopes = fc.subarray(["a", "b", "d", "d/e", "f/a"], { minLength: 1 });
    fc.assert(
      fc.property(disks(), rowsOf(STATES), scopes, (disk, rows, scope) => {
        const inScope = scopeTest(scope);
        // Files outside have inodes of their own.
        const apart = <F extends { path: string; ino: number }>(seen: F): F =>
          inScope(seen.path) || seen.ino === 5 || seen.ino === 6 ? seen : { ...seen, ino: seen.ino + 100 };
        const all = disk.map(apart);
        const known = rows.map(apart);
        const whole = reconcile(scanOf(all), known, options);
        const seen = all.filter(({ path }) => inScope(path));
        const part = reconcile(scanOf(seen, { scope }), known, options);
        const pathOf = new Map(known.map(({ id, path }) => [`#${id}`, path]));
        const here = words(whole).filter((line) => {
          const path = /^(?:read|refused|skipped) (\S+)/.exec(line)?.[1];
          return inScope(path ?? pathOf.get(/#\d+/.exec(line)?.[0] ?? "") ?? "");
        });
        expect(words(part)).toEqual(here);
      }),
      RUNS,
    );
  });

  it("blind: a path that was not scanned, or could not be, is never gone and never moved", () => {
    const blindSpots = fc.subarray(["d", "d/e", "a", ""]);
    const scopes = fc.option(fc.subarray(["a", "b", "d", "d/e"]), { nil: undefined });
    fc.assert(
      fc.property(disks(), rowsOf(STATES), blindSpots, scopes, (disk, rows, blind, scope) => {
        const isHidden = (path: string): boolean =>
          blind.some((each) => each === "" || below(path, each)) || !scopeTest(scope)(path);
        const seen = disk.filter(({ path }) => !isHidden(path));
        const unreadable = blind.map((path) => ({ path, code: "EACCES" }));
        const difference = reconcile(scanOf(seen, { unreadable, scope }), rows, options);
        const touched = [
          ...difference.gone,
          ...difference.forgotten,
          ...difference.moves.map(({ known }) => known),
        ];
        expect(touched.filter(({ path }) => isHidden(path))).toEqual([]);
        const unread = (row: KnownFile): boolean =>
          blind.some((each) => each === "" || below(row.path, each));
        const kept = rows.filter((row) => row.docId !== null && !isHeldState(row) && unread(row));
        expect(difference.hidden).toBe(kept.length);
      }),
      RUNS,
    );
  });

  it("busy: a path with work in flight is not compared", () => {
    const paths = fc.subarray([...PATHS]);
    fc.assert(
      fc.property(disks(), rowsOf(STATES), paths, (disk, rows, work) => {
        const busy = (path: string): boolean => work.includes(path as (typeof PATHS)[number]);
        const difference = reconcile(scanOf(disk), rows, { ...options, busy });
        const named = [
          ...difference.candidates.map(({ entry }) => entry.path),
          ...difference.gone.map(({ path }) => path),
          ...difference.forgotten.map(({ path }) => path),
          ...difference.skipped.map(({ entry }) => entry.path),
          ...difference.refused.map(({ path }) => path),
          ...difference.moves.map(({ known }) => known.path),
        ];
        expect(named.filter(busy)).toEqual([]);
      }),
      RUNS,
    );
  });

  it("moves are optimal: a file that only has another name is moved, never created again", () => {
    const living = STATES.filter((state) => state !== "held" && state !== "doomed" && state !== "skipped");
    fc.assert(
      fc.property(plainDisks, rowsOf(living, 20), (disk, rows) => {
        const entries = scanOf(disk).entries;
        const known = rows.filter(({ ino }, index) => rows.findIndex((other) => other.ino === ino) === index);
        const { moves, gone, candidates } = reconcile(scanOf(disk), known, options);
        for (const row of known) {
          const entry = entries.find((each) => sameIdentity(each, row));
          if (entry === undefined || entry.path === row.path || row.docId === null) continue;
          expect(moves).toContainEqual({ known: row, entry });
          expect(gone.map(({ id }) => id)).not.toContain(row.id);
          expect(candidates.find((candidate) => candidate.entry.path === entry.path)?.known?.id).toBe(row.id);
        }
      }),
      RUNS,
    );
  });

  it("no guessing: a move joins two scans of one file, and no row or path is moved twice", () => {
    fc.assert(
      fc.property(disks(3), rowsOf(STATES, 3), (disk, rows) => {
        const { moves } = reconcile(scanOf(disk), rows, options);
        for (const { known, entry } of moves) {
          expect(sameIdentity(known, entry) && known.path !== entry.path && known.docId !== null).toBe(true);
          // A living row whose path still has its inode was edited in place.
          const stayed = disk.some((each) => each.path === known.path && each.ino === known.ino);
          expect(stayed && !isHeldState(known)).toBe(false);
        }
        expect(new Set(moves.map(({ known }) => known.id)).size).toBe(moves.length);
        expect(new Set(moves.map(({ entry }) => entry.path)).size).toBe(moves.length);
      }),
      RUNS,
    );
  });

  it("once: no row and no path comes twice in a plan, so that one path has one action at a time", () => {
    fc.assert(
      fc.property(disks(), rowsOf(STATES), (disk, rows) => {
        const { candidates, gone, forgotten, returned, refused, skipped } = reconcile(
          scanOf(disk),
          rows,
          options,
        );
        const paths = [
          ...candidates.map(({ entry }) => entry.path),
          ...skipped.map(({ entry }) => entry.path),
          ...refused.map(({ path }) => path),
        ];
        expect(new Set(paths).size).toBe(paths.length);
        const used = [...candidates, ...refused, ...skipped].flatMap(({ known }) => known ?? []);
        const ids = [...used, ...gone, ...forgotten, ...returned].map(({ id }) => id);
        expect(new Set(ids).size).toBe(ids.length);
      }),
      RUNS,
    );
  });

  it("nothing to send for what has no resource: what is gone has one, what is forgotten or skipped has none", () => {
    fc.assert(
      fc.property(disks(), rowsOf(STATES), (disk, rows) => {
        const { gone, forgotten, skipped } = reconcile(scanOf(disk), rows, options);
        expect(gone.filter(({ docId }) => docId === null)).toEqual([]);
        expect(
          [...forgotten, ...skipped.flatMap(({ known }) => known ?? [])].filter((row) => row.docId),
        ).toEqual([]);
      }),
      RUNS,
    );
  });
});

describe("moves by content", () => {
  const texts = fc.constantFrom("x", "y", "");
  const found = fc.array(fc.tuple(fc.constantFrom(...PATHS), texts), { maxLength: 6 });

  it("a pair has one content, and each row and file has at most one partner", () => {
    fc.assert(
      fc.property(rowsOf(STATES), found, seeds, (rows, files, seed) => {
        const gone = rows.map((known, index) => ({
          known,
          hash: ["x", "y", ""][(seed[index % seed.length] ?? 0) & 1] ?? "",
        }));
        const fresh = files
          .filter(([path], index) => files.findIndex((other) => other[0] === path) === index)
          .map(([path, hash], index) => ({
            entry: { path, ino: 100 + index, sizeBytes: 5, mtimeMs: 1, ctimeMs: 1 },
            hash,
          }));
        const moves = pairByHash(gone, fresh);
        for (const { known, entry } of moves) {
          const hash = gone.find((row) => row.known === known)?.hash;
          expect(hash).toBe(fresh.find((file) => file.entry === entry)?.hash);
          expect(hash !== "" && known.docId !== null && known.state !== "doomed").toBe(true);
        }
        expect(new Set(moves.map(({ known }) => known.id)).size).toBe(moves.length);
        expect(new Set(moves.map(({ entry }) => entry.path)).size).toBe(moves.length);
        const pairs = (list: typeof moves): string[] =>
          list.map(({ known, entry }) => `${known.id} ${entry.path}`).toSorted();
        expect(pairs(pairByHash(shuffled(gone, seed), shuffled(fresh, seed)))).toEqual(pairs(moves));
      }),
      RUNS,
    );
  });

  it("a followed move deletes no moved row, and a row whose path was taken is deleted for certain", () => {
    fc.assert(
      fc.property(disks(), rowsOf(STATES), (disk, rows) => {
        const difference = reconcile(scanOf(disk), rows, options);
        const first = difference.gone.find(({ state }) => state !== "doomed");
        const target = difference.candidates.find(({ known }) => known === undefined)?.entry;
        const byHash = first === undefined || target === undefined ? [] : [{ known: first, entry: target }];
        const { moves, gone, candidates } = followMoves(difference, difference.candidates, byHash);
        const moved = new Set(moves.map(({ known }) => known.id));
        expect(gone.filter(({ id }) => moved.has(id))).toEqual([]);
        expect(candidates).toHaveLength(difference.candidates.length);
        const targets = new Set(moves.map(({ entry }) => entry.path));
        const overwritten = gone.filter(({ path, state }) => targets.has(path) && state !== "held");
        expect(overwritten.filter(({ state }) => state !== "doomed")).toEqual([]);
      }),
      RUNS,
    );
  });
});

describe("laws of decide", () => {
  const USUAL: Shape = {
    kind: "content",
    tier: "fastest",
    ownerId: "o",
    settings: { strategy: "recursive", chunkSize: 1000, chunkOverlap: 50 },
  };
  const anyShape: fc.Arbitrary<Shape> = fc.record({
    kind: fc.constantFrom("content", "file", "link"),
    tier: fc.constantFrom("fastest", "moderate"),
    ownerId: fc.constantFrom("o", "p"),
    settings: fc.record({
      strategy: fc.constant("recursive" as const),
      chunkSize: fc.constantFrom(500, 1000),
      chunkOverlap: fc.constantFrom(0, 50),
    }),
  });
  const shapes = fc.oneof({ weight: 3, arbitrary: fc.constant(USUAL) }, anyShape);
  const reads: fc.Arbitrary<ReadFacts> = fc.record(
    {
      hash: fc.constantFrom("h", "i"),
      title: fc.constantFrom("t", "u"),
      label: fc.constantFrom("l", "m"),
      extractorVersion: fc.constantFrom(1, 2),
      shape: shapes,
      metadataHash: fc.constantFrom("m", "n"),
    },
    { requiredKeys: ["hash", "title", "label", "extractorVersion", "shape"] },
  );
  const files: fc.Arbitrary<LedgerFile | undefined> = fc.option(
    fc.tuple(rowsOf(["agreed", "unsure", "failed", "parked"]), reads).map(([rows, read]) => {
      const row = rows[0] ?? { ...NOWHERE, id: 1, docId: "doc1", state: "agreed", rulesKey: KEY };
      return Object.assign({}, row, { metadataHash: null }, read, { digest: "", fileUrl: null });
    }),
    { nil: undefined },
  );
  const NOWHERE = { path: "a", ino: 1, sizeBytes: 1, mtimeMs: 1, ctimeMs: 1 };

  /** The actions that are possible for a file. */
  const allowed = (read: ReadFacts, row: LedgerFile | undefined): readonly string[] => {
    if (row === undefined || row.docId === null) return ["create"];
    if (!sameShape(read.shape, row.shape)) return ["replace"];
    if (row.state === "unsure" || read.hash !== row.hash) return ["update"];
    return ["update", "move", "retitle", "touch"];
  };

  it("total: a file without a resource is created, one with another shape replaced, and any other changed or not sent", () => {
    fc.assert(
      fc.property(reads, files, fc.boolean(), (read, row, moved) => {
        const action = decide(read, row, moved);
        expect(allowed(read, row)).toContain(action);
        const hasMetadata = read.metadataHash === undefined || row?.metadataHash === read.metadataHash;
        const isSame =
          row?.hash === read.hash && row.label === read.label && row.title === read.title && hasMetadata;
        expect(action === "touch" && !isSame).toBe(false);
      }),
      RUNS,
    );
  });

  it("stable: what was acknowledged as it was read needs nothing", () => {
    fc.assert(
      fc.property(reads, files, (read, row) => {
        const nothing = { digest: "", sent: "", fileUrl: null, metadataHash: null };
        const before = row ?? { ...NOWHERE, ...nothing, id: 1, rulesKey: KEY };
        const agreed: LedgerFile = { ...before, ...read, docId: "doc", state: "agreed" };
        expect(decide(read, agreed, false)).toBe("touch");
      }),
      RUNS,
    );
  });
});

describe("laws of the brakes", () => {
  const facts: fc.Arbitrary<BrakeFacts> = fc.record({
    rootBefore: fc.constantFrom(undefined, { dev: 1, ino: 1 }, { dev: 1, ino: 2 }, { dev: 2, ino: 1 }),
    filesBefore: fc.integer({ min: 10, max: 30 }),
    missingBusy: fc.integer({ min: 0, max: 20 }),
    hidden: fc.integer({ min: 0, max: 20 }),
    unread: fc.constant(0),
    deletedLately: fc.integer({ min: 0, max: 20 }),
    heldBefore: fc.integer({ min: 0, max: 10 }),
    holdDeletesOver: fc.integer({ min: 0, max: 12 }),
    holdDeletesPercent: fc.constantFrom(0, 20, 60, 100),
    holdReason: fc.constantFrom(undefined, "held before"),
    approval: fc.constantFrom(undefined, { root: { dev: 1, ino: 1 }, files: 5 }),
    keeps: fc.constant(false),
    others: fc.constant(new Set<number>()),
    leftOut: fc.constantFrom(new Set<number>(), new Set([1, 2])),
  });
  const missing = rowsOf(["agreed", "unsure", "parked", "held", "doomed"]).map((rows) =>
    rows.filter(({ docId }) => docId !== null),
  );
  const scans = fc
    .tuple(disks(), fc.boolean())
    .map(([disk, missingRoot]) => scanOf(disk, missingRoot ? { root: undefined } : {}));
  const idsOf = (rows: readonly KnownFile[]): number[] => rows.map(({ id }) => id);

  it("every missing row is deleted or held, never both, and none of a halted source is deleted", () => {
    fc.assert(
      fc.property(scans, missing, facts, (scan, gone, known) => {
        const braked = brake(scan, gone, known);
        const reported = [...idsOf(braked.deletes), ...idsOf(braked.held)];
        expect(new Set(reported).size).toBe(reported.length);
        expect(braked.halted ? braked.deletes : gone.filter(({ id }) => !reported.includes(id))).toEqual([]);
        expect(braked.reason === undefined).toBe(braked.held.length === 0 && !braked.halted);
        expect(braked.counted).toBeLessThanOrEqual(braked.deletes.length);
      }),
      RUNS,
    );
  });

  it("a source that deletes nothing deletes only what a person agreed to, and what is another source's", () => {
    fc.assert(
      fc.property(scans, missing, fc.func(fc.boolean()), facts, (scan, gone, isOther, known) => {
        const others = new Set(idsOf(gone).filter(isOther));
        const braked = brake(scan, gone, { ...known, keeps: true, others });
        const agreed = gone.filter(({ id, state }) => state === "doomed" || others.has(id));
        expect(idsOf(braked.deletes)).toEqual(braked.halted ? [] : idsOf(agreed));
        expect([braked.counted, braked.halted ? undefined : braked.reason]).toEqual([0, undefined]);
      }),
      RUNS,
    );
  });

  it("monotone: held deletes are not released because more is missing", () => {
    fc.assert(
      fc.property(scans, missing, fc.integer({ min: 0, max: 10 }), facts, (scan, gone, part, known) => {
        const { held } = brake(scan, gone.slice(0, part), { ...known, approval: undefined });
        const more = brake(scan, gone, { ...known, approval: undefined });
        const freed = new Set(idsOf(more.deletes));
        expect(idsOf(held).filter((id) => freed.has(id))).toEqual([]);
      }),
      RUNS,
    );
  });

  it("monotone: tighter limits, or more missing or recently deleted files, never release more", () => {
    fc.assert(
      fc.property(scans, missing, facts, fc.nat(10), fc.nat(20), (scan, gone, known, over, lately) => {
        const loose = new Set(idsOf(brake(scan, gone, known).deletes));
        const tight = brake(scan, gone, {
          ...known,
          holdDeletesOver: Math.max(0, known.holdDeletesOver - over),
          deletedLately: known.deletedLately + lately,
          missingBusy: known.missingBusy + lately,
          hidden: known.hidden + lately,
        });
        expect(idsOf(tight.deletes).filter((id) => !loose.has(id))).toEqual([]);
      }),
      RUNS,
    );
  });

  it("an approval releases: agreed deletes proceed while the folder is the agreed one, and count against nothing", () => {
    fc.assert(
      fc.property(disks(), missing, facts, (disk, gone, known) => {
        const scan = scanOf(disk);
        const doomed = gone.map((row) => ({ ...row, state: "doomed" as const }));
        const byRow = brake(scan, doomed, { ...known, rootBefore: scan.root });
        expect([idsOf(byRow.deletes), byRow.counted]).toEqual([idsOf(gone), 0]);
        const approval = { root: { dev: 1, ino: 1 }, files: gone.length };
        const asWhole = brake(scan, gone, { ...known, approval });
        expect([idsOf(asWhole.deletes), asWhole.counted]).toEqual([idsOf(gone), 0]);
      }),
      RUNS,
    );
  });

  it("an approval is exact: it releases nothing of another root, and nothing when more is missing than it covered", () => {
    fc.assert(
      fc.property(disks(), missing, facts, fc.boolean(), (disk, gone, known, other) => {
        const open = gone.filter(({ state }) => state !== "doomed");
        if (open.length === 0) return;
        const approval = other
          ? { root: { dev: 3, ino: 3 }, files: gone.length }
          : { root: { dev: 1, ino: 1 }, files: open.length - 1 };
        const { reason: _agreed, ...withWord } = brake(scanOf(disk), gone, { ...known, approval });
        const { reason: _none, ...without } = brake(scanOf(disk), gone, { ...known, approval: undefined });
        expect(withWord).toEqual(without);
      }),
      RUNS,
    );
  });

  it("foreseen: the rules are tested for missing files exactly when an emptied folder would have some of them held", () => {
    fc.assert(
      fc.property(missing, facts, (gone, known) => {
        const scan = scanOf([]);
        const heldBefore = gone.filter(({ state }) => state === "held").length;
        const same = { ...known, rootBefore: scan.root, approval: undefined, heldBefore };
        const newlyHeld = brake(scan, gone, same).held.filter(({ state }) => state !== "held");
        expect(mayHold(gone, same)).toBe(newlyHeld.length > 0);
      }),
      RUNS,
    );
  });

  it("order-free: the order of the missing rows decides nothing", () => {
    fc.assert(
      fc.property(scans, missing, facts, seeds, (scan, gone, known, seed) => {
        const one = brake(scan, gone, known);
        const other = brake(scan, shuffled(gone, seed), known);
        expect(new Set(idsOf(other.deletes))).toEqual(new Set(idsOf(one.deletes)));
        expect([other.halted, other.reason, other.counted]).toEqual([one.halted, one.reason, one.counted]);
      }),
      RUNS,
    );
  });
});

describe("laws of retries", () => {
  const failures = fc.integer({ min: 1, max: 2000 });
  const chance = fc.double({ min: 0, max: 0.999_999, noNaN: true });
  const wish = fc.option(fc.integer({ min: 0, max: 10_000_000 }), { nil: undefined });

  it("a backoff is bounded, grows with the failures, and is at least what the service asks for within an hour", () => {
    fc.assert(
      fc.property(failures, wish, chance, (count, retryAfterMs, random) => {
        const delay = delayMs(count, retryAfterMs, random);
        expect(delay).toBeGreaterThanOrEqual(125);
        expect(delay).toBeLessThanOrEqual(Math.max(DELAY_MS_MAX, Math.min(retryAfterMs ?? 0, 3_600_000)));
        expect(delayMs(count + 1, retryAfterMs, random)).toBeGreaterThanOrEqual(delay);
        expect(delay).toBeGreaterThanOrEqual(Math.min(retryAfterMs ?? 0, 3_600_000));
      }),
      RUNS,
    );
  });

  it("a parked file waits from a minute to an hour, longer each time", () => {
    fc.assert(
      fc.property(failures, (tries) => {
        expect(parkMs(tries)).toBeGreaterThanOrEqual(60_000);
        expect(parkMs(tries)).toBeLessThanOrEqual(3_600_000);
        expect(parkMs(tries + 1)).toBeGreaterThanOrEqual(parkMs(tries));
      }),
      RUNS,
    );
  });

  it("the width of the queue stays between one and its bound, and a failure costs more than a success gains", () => {
    fc.assert(
      fc.property(
        fc.double({ min: 1, max: 256, noNaN: true }),
        fc.integer({ min: 1, max: 256 }),
        (width, max) => {
          const wider = widen(Math.min(width, max), max);
          expect(wider).toBeGreaterThanOrEqual(Math.min(width, max));
          expect(wider).toBeLessThanOrEqual(max);
          expect(narrow(width)).toBeGreaterThanOrEqual(1);
          expect(narrow(width)).toBeLessThanOrEqual(width);
          expect(narrow(wider)).toBeLessThanOrEqual(Math.max(1, wider / 2));
        },
      ),
      RUNS,
    );
  });
});

describe("laws of checks", () => {
  const SETTLE_MS = 100;
  const events = fc.array(
    fc.record({ path: fc.constantFrom("a", "b", "c"), afterMs: fc.integer({ min: 0, max: 400 }) }),
    { minLength: 1, maxLength: 60 },
  );

  it("a marked path is returned once, when it has rested or after two seconds, and never forgotten", () => {
    fc.assert(
      fc.property(events, (list) => {
        const checks = openChecks(SETTLE_MS, () => undefined);
        const open = new Map<string, { firstMs: number; lastMs: number }>();
        let nowMs = 1_000_000;
        const take = (): void => {
          for (const path of checks.take(nowMs)?.paths ?? []) {
            const mark = open.get(path);
            expect(mark).toBeDefined();
            const rested = nowMs - (mark?.lastMs ?? 0) >= SETTLE_MS;
            expect(rested || nowMs - (mark?.firstMs ?? 0) >= LOOK_MS).toBe(true);
            open.delete(path);
          }
        };
        for (const { path, afterMs } of list) {
          nowMs += afterMs;
          take();
          checks.settle(path, nowMs);
          open.set(path, { firstMs: open.get(path)?.firstMs ?? nowMs, lastMs: nowMs });
          expect([checks.isQuiet(), (checks.nextDueMs() ?? Infinity) <= nowMs + SETTLE_MS]).toEqual([
            false,
            true,
          ]);
        }
        nowMs += SETTLE_MS;
        take();
        expect([open.size, checks.isQuiet(), checks.nextDueMs()]).toEqual([0, true, undefined]);
      }),
      RUNS,
    );
  });

  it("a file that is written to without a pause is still looked at every two seconds", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: SETTLE_MS - 1 }), (everyMs) => {
        const checks = openChecks(SETTLE_MS, () => undefined);
        const given: number[] = [];
        for (let nowMs = 0; nowMs <= 5 * LOOK_MS + 4 * SETTLE_MS; nowMs += everyMs) {
          if ((checks.take(nowMs)?.paths.length ?? 0) > 0) given.push(nowMs);
          checks.settle("a", nowMs);
        }
        expect(given.length === 4 || given.length === 5).toBe(true);
      }),
      { numRuns: 20 },
    );
  });
});

describe("laws of moved sources", () => {
  const roots = fc.constantFrom(undefined, { dev: 1, ino: 1 }, { dev: 1, ino: 2 }, { dev: 2, ino: 1 });
  const owners = fc.constantFrom("o", "p");
  const fresh = fc.uniqueArray(
    fc.record({
      path: fc.constantFrom("/x", "/y", "/z"),
      ownerId: owners,
      tier: fc.constant("fastest"),
      root: roots,
    }),
    { selector: ({ path }) => path },
  );
  const lost = fc
    .array(fc.record({ ownerId: owners, tier: fc.constant("fastest"), root: roots }), { maxLength: 4 })
    .map((list): LostSource[] => list.map((source, index) => ({ ...source, id: index + 1 })));

  it("no row and no folder is taken twice or from another owner, and the order does not matter", () => {
    fc.assert(
      fc.property(fresh, lost, seeds, (news, olds, seed) => {
        const moves = findSourceMoves(news, olds);
        expect(new Set(moves.map(({ id }) => id)).size).toBe(moves.length);
        expect(new Set(moves.map(({ path }) => path)).size).toBe(moves.length);
        for (const { id, path } of moves) {
          const source: NewSource | undefined = news.find((each) => each.path === path);
          const other = olds.find((each) => each.id === id);
          expect(source?.ownerId).toBe(other?.ownerId);
          expect(source?.root).toBeDefined();
          expect(source?.root).toBe(other?.root);
        }
        const sorted = (list: typeof moves): string[] =>
          list.map(({ id, path }) => `${id} ${path}`).toSorted();
        expect(sorted(findSourceMoves(shuffled(news, seed), shuffled(olds, seed)))).toEqual(sorted(moves));
      }),
      RUNS,
    );
  });
});
