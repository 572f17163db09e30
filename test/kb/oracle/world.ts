import assert from "node:assert/strict";
import { openChance, type Chance } from "../../crash/chance.ts";
import type { Answered, Running } from "../service/running.ts";
import { isOf, nameOf, openClient, PARTS, type Client, type Listed, type PartKey } from "./client.ts";
import { compareSearches } from "./comparison.ts";
import { someText, someWords } from "./texts.ts";

/** Documents of one part: all their chunks together stay few enough for an exact comparison. */
const DOCUMENTS_MAX = 6;

/** A state that a document had, or may have had, until `toTick` at the latest. */
interface State {
  readonly title: string;
  readonly content: string;
  readonly shelf: number;
  toTick: number;
}

interface Doc extends PartKey {
  /** Undefined: it was never answered, so the service may have it or not. */
  id: string | undefined;
  /** The newest last. Where answers were cut off, more than one may be the present one. */
  states: State[];
  /** Undefined: its delete was cut off. */
  isThere: boolean | undefined;
  /** Index of the first of `states` that may be the present one. */
  doubtFrom: number;
  isBusy: boolean;
  /** Never deleted, so that its part always has the model that serves it. */
  readonly isKeeper: boolean;
}

/** What the documents of the service must be, after everything that was asked of it. */
export class World {
  /** Each client's choices follow from it and from what is there when it chooses. */
  readonly #chance: Chance;
  readonly #docs: Doc[] = [];
  #client: Client | undefined;
  #tick = 0;
  #made = 0;

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  /** Goes on with a service that was just started. */
  async use(running: Running): Promise<void> {
    this.#client = await openClient(running);
  }

  /** Gives each part a first document. */
  async begin(): Promise<void> {
    for (const part of PARTS) await this.#create(this.#chance, part, true);
  }

  /**
   * Lets `workers` clients work side by side, each doing `steps` things. With `isCut` their requests may come to nothing.
   */
  async work(workers: number, steps: number, options: { isCut?: boolean } = {}): Promise<void> {
    const work = async (chance: Chance): Promise<void> => {
      for (let step = 0; step < steps; step++) {
        try {
          await this.#step(chance);
        } catch (error) {
          // The service stopped: this client sends nothing more.
          if (options.isCut === true && !(error instanceof assert.AssertionError)) return;
          throw error;
        }
      }
    };
    const chances = Array.from({ length: workers }, () => openChance(this.#chance.below(2 ** 32)));
    await Promise.all(chances.map(work));
  }

  /** Fails where a search does not find exactly what the texts say. `salt` is that of the model which must serve. */
  async compare(salt: string, queries: number): Promise<void> {
    await compareSearches(this.#service(), (part) => this.#listed(part), salt, queries, this.#chance);
  }

  async #step(chance: Chance): Promise<void> {
    const part = chance.pick(PARTS);
    const free = this.#docs.filter(
      (doc) => doc.id !== undefined && doc.isThere === true && !doc.isBusy && isOf(doc, part),
    );
    const drawn = chance.next();
    const some = free.length === 0 ? undefined : chance.pick(free);
    if (drawn < 0.3) return this.#search(chance, part);
    const count = this.#docs.filter((doc) => doc.isThere !== false && isOf(doc, part)).length;
    if (some === undefined || (drawn < 0.5 && count < DOCUMENTS_MAX)) {
      if (count < DOCUMENTS_MAX) await this.#create(chance, part, false);
    } else if (drawn < 0.65) {
      await this.#update(chance, some, { title: this.#title(chance) });
    } else if (drawn < 0.85) {
      await this.#update(chance, some, {
        content: someText(chance),
        ...(chance.happens(0.3) && { title: this.#title(chance) }),
      });
    } else if (drawn < 0.9) {
      await this.#update(chance, some, { metadata: { shelf: chance.below(3) } });
    } else if (!some.isKeeper) {
      await this.#remove(some);
    }
  }

  async #create(chance: Chance, part: PartKey, isKeeper: boolean): Promise<void> {
    const state = this.#state({
      title: this.#title(chance),
      content: someText(chance),
      shelf: chance.below(3),
    });
    const doc: Doc = {
      ...part,
      id: undefined,
      states: [state],
      isThere: undefined,
      doubtFrom: 0,
      isBusy: true,
      isKeeper,
    };
    this.#docs.push(doc);
    const body = {
      title: state.title,
      description: "",
      content: state.content,
      collection_details: part.tier,
      owner_id: part.ownerId,
      metadata: { shelf: state.shelf },
      settings: {
        strategy: "recursive",
        chunkSize: 80 + chance.below(120),
        chunkOverlap: chance.pick([0, 20]),
      },
    };
    const { status, json, text } = await this.#send(
      part.account,
      "POST",
      "/api/rag/resource",
      body,
      preference(chance),
    );
    assert(status === 201 || status === 202, `create: ${text}`);
    doc.id = json.data._id;
    doc.isThere = true;
    doc.isBusy = status === 202;
  }

  async #update(
    chance: Chance,
    doc: Doc,
    change: { title?: string; content?: string; metadata?: { shelf: number } },
  ): Promise<void> {
    const before = doc.states.at(-1);
    assert(before !== undefined);
    const { title = before.title, content = before.content, metadata = { shelf: before.shelf } } = change;
    doc.isBusy = true;
    const next = this.#state({ title, content, shelf: metadata.shelf });
    doc.states.push(next);
    const path = `/api/rag/resource/${doc.id}`;
    const { status, text } = await this.#send(doc.account, "PUT", path, change, preference(chance));
    assert(status === 200 || status === 202, `update: ${text}`);
    // What is still in the queue is done when the queue is empty: until then either may be found.
    doc.doubtFrom = doc.states.length - 1;
    if (status === 202) return;
    doc.isBusy = false;
    for (const state of doc.states.slice(0, -1)) state.toTick = Math.min(state.toTick, this.#tick);
  }

  async #remove(doc: Doc): Promise<void> {
    doc.isBusy = true;
    doc.isThere = undefined;
    const { status, text } = await this.#send(doc.account, "DELETE", `/api/rag/resource/${doc.id}`);
    assert.equal(status, 200, text);
    doc.isThere = false;
    for (const state of doc.states) state.toTick = Math.min(state.toTick, this.#tick);
  }

  /** A search amid all else: it finds what stays as it is, and nothing that was gone before or is someone else's. */
  async #search(chance: Chance, part: PartKey): Promise<void> {
    const since = ++this.#tick;
    const stable = this.#docs.filter((doc) => isOf(doc, part) && doc.isThere === true && !doc.isBusy);
    const wanted = stable.length === 0 ? undefined : chance.pick(stable);
    const state = wanted?.states.at(-1);
    const marker = state?.title.split(" ")[0] ?? "";
    const asked = { query: `${someWords(chance, 2)} ${marker}`, top_k: 100 };
    const results = await this.#service().query(part, asked);
    for (const { payload } of results) {
      const doc = this.#docs.find(({ id }) => id === payload.resourceId);
      // One that was created, and not answered for yet, is nobody's in particular.
      if (doc === undefined) continue;
      assert(isOf(doc, part), `a search of ${nameOf(part)} found ${payload.resourceId} of ${nameOf(doc)}`);
      const states = doc.states.filter(({ toTick }) => toTick >= since);
      const isKnown = states.some(
        ({ content, title }) => content.includes(payload.content) && title === payload.title,
      );
      assert(isKnown, `a search found what ${payload.resourceId} no longer held: ${JSON.stringify(payload)}`);
    }
    const isSame =
      wanted !== undefined && !wanted.isBusy && wanted.isThere === true && wanted.states.at(-1) === state;
    if (isSame) {
      const isFound = results.some(({ payload }) => payload.resourceId === wanted.id);
      assert(isFound, `a search for ${marker} in ${nameOf(part)} did not find ${wanted.id}`);
    }
  }

  /** The documents of a part; fails where these are not what was asked for. */
  async #listed(part: PartKey): Promise<readonly Listed[]> {
    const listed = await this.#service().list(part);
    const missing = new Map(listed.map((one) => [one.id, one]));
    for (const doc of this.#docs.filter((each) => isOf(each, part))) {
      const found =
        doc.id === undefined
          ? [...missing.values()].find(({ title }) => title === doc.states[0]?.title)
          : missing.get(doc.id);
      if (doc.isThere !== undefined)
        assert.equal(found !== undefined, doc.isThere, `${doc.id} of ${nameOf(part)}, in the list`);
      doc.id ??= found?.id;
      doc.isThere = found !== undefined;
      doc.isBusy = false;
      if (found === undefined) continue;
      missing.delete(found.id);
      const state = doc.states
        .slice(doc.doubtFrom)
        .findLast(({ title, content, shelf }) => isEqual({ title, content, shelf }, found));
      assert(
        state !== undefined,
        `${found.id} is ${JSON.stringify(found)}; expected ${JSON.stringify(doc.states.slice(doc.doubtFrom))}`,
      );
      doc.states = [Object.assign(state, { toTick: Infinity })];
      doc.doubtFrom = 0;
    }
    assert.deepEqual([...missing.values()], [], `documents that nobody made, of ${nameOf(part)}`);
    return listed;
  }

  #service(): Client {
    assert(this.#client !== undefined, "no service was started");
    return this.#client;
  }

  async #send(
    account: string,
    method: string,
    path: string,
    body?: object,
    headers?: object,
  ): Promise<Answered> {
    const answered = await this.#service().send(account, method, path, body, headers);
    this.#tick += 1;
    return answered;
  }

  /** Begins with a word of its own. */
  #title(chance: Chance): string {
    return `n${++this.#made} ${someWords(chance, 1 + chance.below(3))}`;
  }

  #state(given: Pick<State, "title" | "content" | "shelf">): State {
    return { ...given, toTick: Infinity };
  }
}

function preference(chance: Chance): Record<string, string> {
  return chance.happens(0.2) ? { prefer: "respond-async" } : {};
}

function isEqual(state: Pick<State, "title" | "content" | "shelf">, listed: Listed): boolean {
  return state.title === listed.title && state.content === listed.content && state.shelf === listed.shelf;
}
