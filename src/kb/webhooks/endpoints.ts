import { newHexId } from "../../lib/ids.ts";
import type { EndpointBody, EndpointChangeBody } from "../../wire/webhook.ts";
import { invalidField, Refusal, shown } from "../resources/refusal.ts";
import type { Records } from "../store/records.ts";
import type { Endpoint, EndpointKey } from "../store/webhooks.ts";
import { isSecret, newSecret, SECRET_BYTES_MAX, SECRET_BYTES_MIN } from "./sign.ts";

/** Most endpoints of an account: every event is written once for each. */
const ENDPOINTS_MAX = 20;
/** Hint of a refused secret of an endpoint. */
const GENERATED = "Leave it out to have one generated.";

/** Dependencies of the operations on endpoints. */
export interface EndpointParts {
  readonly records: Records;
  readonly nowMs: () => number;
  /** Reports whether messages may go to a host, judged by its name or literal address. The dial checks the resolved address. */
  readonly allowsHost: (host: string) => boolean;
}

/** An endpoint with its secret, generated or given. */
interface NewEndpoint {
  readonly endpoint: Endpoint;
  readonly secret: string;
}

/** Registers an endpoint. Throws `invalid_field` for an address that is not allowed, and `too_many_endpoints`. */
export async function createEndpoint(
  parts: EndpointParts,
  accountId: string,
  body: EndpointBody,
): Promise<NewEndpoint> {
  const url = checkedUrl(parts, body.url);
  const secret = givenSecret(body.secret, GENERATED) ?? newSecret();
  const endpoint = await parts.records.addEndpoint(
    {
      id: newHexId(parts.nowMs()),
      accountId,
      url,
      description: body.description.toWellFormed(),
      events: [...new Set(body.events)],
      secret,
      enabled: true,
      nowIso: nowIso(parts),
    },
    ENDPOINTS_MAX,
  );
  return { endpoint, secret };
}

/** Changes an endpoint. A new secret signs from the next attempt on. Throws as `createEndpoint`. */
export async function changeEndpoint(
  parts: EndpointParts,
  at: EndpointKey,
  body: EndpointChangeBody,
): Promise<Endpoint> {
  const { url, events, description, enabled } = body;
  const secret = givenSecret(body.secret, "Leave it out to keep the present one.");
  const change = {
    ...(url === undefined ? {} : { url: checkedUrl(parts, url) }),
    ...(events === undefined ? {} : { events: [...new Set(events)] }),
    ...(description === undefined ? {} : { description: description.toWellFormed() }),
    ...(enabled === undefined ? {} : { enabled }),
    ...(secret === undefined ? {} : { secret }),
  };
  if (Object.keys(change).length === 0) {
    throw new Refusal("invalid_body", "The body names nothing to change.", {
      hint: "Send at least one of url, events, description, enabled and secret.",
    });
  }
  return found(await parts.records.changeEndpoint({ ...at, ...change, nowIso: nowIso(parts) }), at.id);
}

/** Reads an endpoint. Throws `endpoint_not_found`. */
export async function readEndpoint(parts: EndpointParts, at: EndpointKey): Promise<Endpoint> {
  return found(await parts.records.endpoint(at), at.id);
}

/** Removes an endpoint and its waiting messages. Throws `endpoint_not_found`. */
export async function removeEndpoint(parts: EndpointParts, at: EndpointKey): Promise<Endpoint> {
  const before = await readEndpoint(parts, at);
  if (!(await parts.records.removeEndpoint(at))) throw notFound(at.id);
  return before;
}

/** Validates and normalises an address for messages without resolving its host. Throws `invalid_field`. */
export function checkedUrl(parts: Pick<EndpointParts, "allowsHost">, given: string): string {
  const url = URL.parse(given);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw invalidField("url", `expected an http or https address, got ${shown(given)}`);
  }
  if (url.username !== "" || url.password !== "") {
    throw invalidField("url", "expected an address without user name and password");
  }
  if (!parts.allowsHost(url.hostname)) {
    throw invalidField(
      "url",
      `expected a public address, got ${shown(url.hostname)}`,
      "The operator of the service can allow other addresses with kb.allowHosts.",
    );
  }
  url.hash = "";
  return url.href;
}

/** Validates a given secret, if any. Throws `invalid_field`, with what happens without a secret as the hint. */
export function givenSecret(given: string | undefined, hint: string): string | undefined {
  if (given === undefined || isSecret(given)) return given;
  throw invalidField(
    "secret",
    `expected whsec_ and ${SECRET_BYTES_MIN} to ${SECRET_BYTES_MAX} bytes in base64`,
    hint,
  );
}

function found(endpoint: Endpoint | undefined, id: string): Endpoint {
  if (endpoint === undefined) throw notFound(id);
  return endpoint;
}

function notFound(id: string): Refusal {
  return new Refusal("endpoint_not_found", `This key has no endpoint ${shown(id)}.`);
}

function nowIso({ nowMs }: EndpointParts): string {
  return new Date(nowMs()).toISOString();
}
