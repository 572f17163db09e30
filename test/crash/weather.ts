import type { Chance } from "./chance.ts";
import type { Fault, ProxiedRequest } from "./fault-proxy.ts";

/**
 * A network on a bad day: what happens to a request, if anything does. `share` of them meet something. A create that
 * comes twice makes two resources of a bare service and gives no sign of it: only an audit finds that, so it is left out.
 */
export function storm(
  chance: Chance,
  { share, bare }: { readonly share: number; readonly bare: boolean },
): (request: ProxiedRequest) => Fault | undefined {
  return ({ operation }) => {
    if (!chance.happens(share)) return undefined;
    const fault = faultOf(chance);
    return bare && operation === "create" && fault.kind === "duplicate" ? undefined : fault;
  };
}

/** The answers that cost least time come most often. */
function faultOf(chance: Chance): Fault {
  const roll = chance.below(100);
  if (roll < 15) return { kind: "drop" };
  if (roll < 35) return { kind: "swallow" };
  if (roll < 50) return { kind: "delay", ms: chance.below(300) };
  if (roll < 60) return { kind: "reset-midway" };
  if (roll < 70) return { kind: "truncate" };
  if (roll < 80) return { kind: "page", status: chance.pick([200, 500, 502]) };
  if (roll < 88) return { kind: "duplicate" };
  if (roll < 92) return tooMany({ "retry-after": "1" });
  if (roll < 96) return tooMany({ "retry-after": new Date(Date.now() + 1000).toUTCString() });
  return { kind: "answer", status: 500, body: "<html><body>Internal Server Error</body></html>" };
}

/** The service asks for some time, in one of the two ways that there are. */
export function tooMany(headers: Readonly<Record<string, string>>): Fault {
  const body = '{"success":false,"message":"too many requests"}';
  return { kind: "answer", status: 429, body, headers: { "content-type": "application/json", ...headers } };
}
