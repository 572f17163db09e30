/** Most members of a group: so many that what a transaction costs hardly matters, and so few that it holds its locks briefly. */
const GROUP_MAX = 64;
/** Most characters of a group, unless one member has more. */
const GROUP_CHARS_MAX = 2_000_000;
/** Groups of one key at a time. A second one begins when it is full: it is sent while the first waits for the flush of its commit. */
const GROUPS_PER_KEY = 2;

/** Writes that are committed in groups. */
export interface GroupWrites<Member, Outcome> {
  /** Writes a member with others of its key that wait at the time. Throws the error of `full` if too many wait. */
  add(key: string, member: Member, chars: number): Promise<Outcome>;
}

export interface GroupWritesOptions<Member, Outcome> {
  /**
   * Writes a group in one transaction, and returns the outcome of each member; an error there is of that member alone. Calls `take` for
   * the members when it can begin, and again whenever it starts over: the group stays as it is.
   */
  readonly write: (key: string, take: () => readonly Member[]) => Promise<readonly (Outcome | Error)[]>;
  /** Whether a failure would meet every member alone as well, or may have written them all. */
  readonly isOfAll: (failure: unknown) => boolean;
  /** Most members that wait. */
  readonly waitingMax: number;
  /** Creates the error for a member that finds so many waiting. */
  readonly full: () => Error;
}

interface Waiting<Member, Outcome> {
  readonly member: Member;
  readonly chars: number;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (failure: unknown) => void;
}

/** The members of one key, in the order of their arrival. */
interface Line<Member, Outcome> {
  readonly waiting: Waiting<Member, Outcome>[];
  groups: number;
}

/**
 * Opens writes in groups: what waits when a writer becomes free is written in one transaction. A member on its own waits for nothing. If
 * a group fails, its members are written one by one, so that none fails because of another.
 */
export function openGroupWrites<Member, Outcome>({
  write,
  isOfAll,
  waitingMax,
  full,
}: GroupWritesOptions<Member, Outcome>): GroupWrites<Member, Outcome> {
  type Group = readonly Waiting<Member, Outcome>[];
  const lines = new Map<string, Line<Member, Outcome>>();
  let waiting = 0;

  const shift = (line: Line<Member, Outcome>): Group => {
    const group = line.waiting.splice(0, groupSize(line.waiting));
    waiting -= group.length;
    return group;
  };

  const attempt = async (key: string, take: () => Group): Promise<void> => {
    try {
      const outcomes = await write(key, () => take().map(({ member }) => member));
      for (const [at, { resolve, reject }] of take().entries()) {
        const outcome = outcomes[at];
        if (outcome instanceof Error || outcome === undefined)
          reject(outcome ?? new TypeError("a member of a group has no outcome"));
        else resolve(outcome);
      }
    } catch (failure) {
      const group = take();
      if (group.length <= 1 || isOfAll(failure)) for (const { reject } of group) reject(failure);
      // Together, because a lock that one of them does not get must not delay the others.
      else await Promise.all(group.map((one) => attempt(key, () => [one])));
    }
  };

  const drain = async (key: string, line: Line<Member, Outcome>): Promise<void> => {
    while (line.waiting.length > 0) {
      let group: Group | undefined;
      await attempt(key, () => (group ??= shift(line)));
    }
    line.groups -= 1;
    if (line.groups === 0) lines.delete(key);
  };

  return {
    add(key, member, chars) {
      if (waiting >= waitingMax) return Promise.reject(full());
      const line = lines.get(key) ?? { waiting: [], groups: 0 };
      lines.set(key, line);
      const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
      line.waiting.push({ member, chars, resolve, reject });
      waiting += 1;
      if (line.groups === 0 || (line.groups < GROUPS_PER_KEY && line.waiting.length >= GROUP_MAX)) {
        line.groups += 1;
        void drain(key, line);
      }
      return promise;
    },
  };
}

/** Returns how many of the first members fit into a group; at least one. */
function groupSize(waiting: readonly { readonly chars: number }[]): number {
  let chars = 0;
  let size = 0;
  for (const member of waiting.slice(0, GROUP_MAX)) {
    chars += member.chars;
    if (size > 0 && chars > GROUP_CHARS_MAX) break;
    size += 1;
  }
  return size;
}
