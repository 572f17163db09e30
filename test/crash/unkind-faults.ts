import type { Chance } from "./chance.ts";
import { tooMany } from "./weather.ts";
import type { Fault, Operation, ProxiedRequest } from "./fault-proxy.ts";

/** One way in which a request goes wrong; without `only` any request may. */
interface UnkindFault {
  readonly name: string;
  readonly only?: readonly Operation[];
  readonly fault: (chance: Chance) => Fault;
}

const BY_ID: readonly Operation[] = ["update", "delete"];
/** What comes twice makes two resources of a bare service and gives no sign of it. */
const REPEATABLE: readonly Operation[] = ["update", "delete", "list", "upload"];
const JSON_HEADERS = { "content-type": "application/json" };
const PAGE = "<html><body>One moment, please</body></html>";

const json = (status: number, body: unknown, headers = {}): Fault => ({
  kind: "answer",
  status,
  body: JSON.stringify(body),
  headers: { ...JSON_HEADERS, ...headers },
});
const page = (status: number, headers = {}): Fault => ({ kind: "answer", status, body: PAGE, headers });
const no = (message: string): unknown => ({ success: false, message });
const acted = (status: number, body: unknown): Fault => ({
  kind: "acted",
  status,
  body: JSON.stringify(body),
});

/** All of them. Wrong lists are the service's own; see `openListView`. */
export const UNKIND_FAULTS: readonly UnkindFault[] = [
  { name: "dropped before it arrives", fault: () => ({ kind: "drop" }) },
  { name: "applied, connection dropped", fault: () => ({ kind: "swallow" }) },
  { name: "applied, reset amid the answer", fault: () => ({ kind: "reset-midway" }) },
  { name: "applied, truncated JSON", fault: () => ({ kind: "truncate" }) },
  { name: "a little late", fault: (chance) => ({ kind: "delay", ms: chance.below(300) }) },
  { name: "arrives late", fault: (chance) => ({ kind: "delay", ms: 500 + chance.below(2000) }) },
  { name: "answered late", fault: (chance) => ({ kind: "answer-late", ms: chance.below(2000) }) },
  { name: "answered very late", fault: () => ({ kind: "answer-late", ms: 6000 }) },
  { name: "never answered", fault: () => ({ kind: "hang" }) },
  { name: "dropped, applied soon after", fault: (chance) => ({ kind: "act-late", ms: chance.below(500) }) },
  { name: "dropped, applied late", fault: (chance) => ({ kind: "act-late", ms: 1000 + chance.below(4000) }) },
  { name: "doubled", only: REPEATABLE, fault: () => ({ kind: "duplicate" }) },
  { name: "applied, page with 200", fault: () => ({ kind: "page", status: 200 }) },
  { name: "applied, page with 500", fault: () => ({ kind: "page", status: 500 }) },
  { name: "applied, page with 502", fault: () => ({ kind: "page", status: 502 }) },
  { name: "applied, page with 503", fault: () => ({ kind: "page", status: 503 }) },
  { name: "applied, page with 504", fault: () => ({ kind: "page", status: 504 }) },
  // Of a create such a page says that the address is wrong, so that nothing was made: that it was can be seen by no one.
  { name: "applied, page with 404", only: BY_ID, fault: () => ({ kind: "page", status: 404 }) },
  { name: "applied, JSON with 500", fault: () => acted(500, no("internal error")) },
  { name: "applied, JSON with 502", fault: () => acted(502, no("bad gateway")) },
  { name: "applied, JSON with 504", fault: () => acted(504, no("too slow")) },
  { name: "applied, an empty object", fault: () => acted(200, {}) },
  { name: "applied, a list in place of an object", fault: () => acted(200, []) },
  { name: "applied, null", fault: () => acted(200, null) },
  { name: "applied, success without data", only: ["create"], fault: () => acted(201, { success: true }) },
  { name: "page with 200", fault: () => page(200) },
  { name: "page with 403", fault: () => page(403) },
  { name: "page with 404", fault: () => page(404) },
  { name: "page with 502", fault: () => page(502) },
  { name: "empty body with 200", fault: () => ({ kind: "answer", status: 200, body: "" }) },
  { name: "sent on to elsewhere", fault: () => page(302, { location: "/login" }) },
  { name: "200 with success: false", fault: () => json(200, no("not now")) },
  { name: "400 for once", only: ["update"], fault: () => json(400, no("not like that")) },
  { name: "401 for once", fault: () => json(401, no("unknown key")) },
  { name: "403 for once", fault: () => json(403, no("not with that key")) },
  { name: "false 404", only: BY_ID, fault: () => json(404, no("no such resource")) },
  { name: "applied, false 404", only: BY_ID, fault: () => acted(404, no("no such resource")) },
  { name: "408", fault: () => json(408, no("too slow")) },
  { name: "429 in seconds", fault: () => tooMany({ "retry-after": "1" }) },
  {
    name: "429 with a date",
    fault: () => tooMany({ "retry-after": new Date(Date.now() + 1000).toUTCString() }),
  },
  { name: "429 without a word", fault: () => tooMany({}) },
  { name: "500", fault: () => json(500, no("internal error")) },
  { name: "503 for a second", fault: () => json(503, no("starting"), { "retry-after": "1" }) },
];

/** What happens to requests: `share` of them meet a fault, each kind as often as any other. */
export function unkindFaults(
  chance: Chance,
  share: number,
): (request: ProxiedRequest) => { readonly name: string; readonly fault: Fault } | undefined {
  return ({ operation }) => {
    if (!chance.happens(share)) return undefined;
    const { name, only, fault } = chance.pick(UNKIND_FAULTS);
    if (only?.includes(operation) === false) return undefined;
    return { name, fault: fault(chance) };
  };
}
