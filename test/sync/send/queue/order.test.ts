import * as fc from "fast-check";
import { expect, it } from "vitest";
import {
  chooseNext,
  type Contender,
  FIRST_TURNS,
  RECENT,
  RECENT_MAX,
  type Rank,
  rankOf,
  TURNS,
} from "../../../../src/sync/send/queue/order.ts";

const line = (rank: Rank, seq: number, load = 0): Contender => ({ rank, seq, load });

it.each<[string, readonly Contender[], number, (readonly [Rank, number][])?]>([
  ["a recent change goes before the backlog", [line(1, 1), line(0, 2)], 2],
  ["a text of the backlog goes before an upload", [line(2, 1), line(1, 2)], 2],
  ["a delete of the backlog goes last", [line(3, 1), line(2, 2)], 2],
  ["the oldest recent change goes first", [line(0, 2), line(0, 1)], 1],
  ["the owner with the fewest jobs under way goes first", [line(0, 1, 3), line(0, 2, 2)], 2],
  ["the backlog has its turn after many recent changes in a row", [line(0, 1), line(1, 2)], 2, [[1, 999]]],
  ["the backlog has no turn before that", [line(0, 1), line(1, 2)], 1, [[1, 1001]]],
  ["an upload has its turn after many texts in a row", [line(1, 1), line(2, 2)], 2, [[2, 1399]]],
  [
    "of two ranks that have a turn, the one whose came first goes",
    [line(1, 1), line(2, 2)],
    2,
    [
      [1, 500],
      [2, 499],
    ],
  ],
])("%s", (_name, contenders, seq, turns = []) => {
  expect(chooseNext(contenders, { byRank: new Map(turns), backlog: 0 }, 1000)?.next.seq).toBe(seq);
});

it("nothing goes if nothing may", () => {
  expect(chooseNext([], FIRST_TURNS, 0)).toBeUndefined();
});

/** What arrives before each of so many choices: jobs of these ranks. */
const arrivals = fc.array(
  fc.record({ ranks: fc.array(fc.constantFrom<Rank>(0, 1, 2, 3), { maxLength: 3 }), times: fc.nat(300) }),
  { maxLength: 6 },
);

/** Chooses among the jobs that have arrived, one after each arrival, then until none is left. Returns what went. */
function run(steps: readonly { readonly ranks: readonly Rank[]; readonly times: number }[]): {
  readonly went: Contender[];
  readonly recentWaiting: number[];
} {
  const lines: Contender[][] = [[], [], [], []];
  const went: Contender[] = [];
  const recentWaiting: number[] = [];
  let turns = FIRST_TURNS;
  let seq = 0;
  const choose = (): boolean => {
    const heads = lines.flatMap(([head]) => head ?? []);
    const chosen = chooseNext(heads, turns, went.length);
    if (chosen === undefined) return false;
    recentWaiting.push(lines[RECENT]?.length ?? 0);
    lines[chosen.next.rank]?.shift();
    ({ turns } = chosen);
    went.push(chosen.next);
    return true;
  };
  for (const { ranks, times } of steps)
    for (let time = 0; time < times; time += 1) {
      for (const rank of ranks) lines[rank]?.push(line(rank, (seq += 1)));
      choose();
    }
  while (choose());
  return { went, recentWaiting };
}

it("every job goes once, those of one rank in order of arrival", () => {
  fc.assert(
    fc.property(arrivals, (steps) => {
      const { went } = run(steps);
      expect(went.length).toBe(steps.reduce((sum, { ranks, times }) => sum + ranks.length * times, 0));
      for (const rank of [0, 1, 2, 3]) {
        const seqs = went.filter((each) => each.rank === rank).map((each) => each.seq);
        expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
      }
    }),
  );
});

it("a recent change is never behind the backlog unless more arrive in a row than count as recent", () => {
  fc.assert(
    fc.property(arrivals, (steps) => {
      const { went, recentWaiting } = run(steps);
      let inARow = 0;
      const overtaken: number[] = [];
      for (const [index, { rank }] of went.entries()) {
        if (rank === RECENT) inARow += 1;
        else if ((recentWaiting[index] ?? 0) > 0) overtaken.push(inARow);
        if (rank !== RECENT) inARow = 0;
      }
      expect(Math.min(Infinity, ...overtaken)).toBeGreaterThan(RECENT_MAX);
    }),
  );
});

it.each<Rank>([1, 2, 3])("a job of rank %i goes although recent changes and texts never end", (rank) => {
  let turns = FIRST_TURNS;
  for (let turn = 0; turn <= TURNS * (TURNS + 2); turn += 1) {
    const chosen = chooseNext([line(0, turn + 10), line(1, turn + 10), line(rank, 1)], turns, turn);
    if (chosen?.next.seq === 1) return;
    turns = chosen?.turns ?? turns;
  }
  expect.fail("it was never its turn");
});

it.each([
  ["text", true, 0],
  ["delete", true, 0],
  ["text", false, 1],
  ["document", false, 2],
  ["delete", false, 3],
] as const)("a %s that is recent (%s) has rank %i", (kind, isRecent, rank) => {
  expect(rankOf(kind, isRecent)).toBe(rank);
});
