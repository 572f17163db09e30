import { codeOf } from "../../lib/failure.ts";
import { newHexId } from "../../lib/ids.ts";
import type { Turns } from "../../lib/turns.ts";
import type { EndpointBody, EndpointChangeBody, RotateSecretBody } from "../../wire/webhook.ts";
import { invalidField, Refusal, shown } from "../resources/refusal.ts";
import type { Records } from "../store/records.ts";
import type { Endpoint, EndpointKey, SigningSecret } from "../store/webhooks.ts";
import { isSecret, newSecret, secretsInForce, SECRET_BYTES_MAX, SECRET_BYTES_MIN } from "./sign.ts";

/** Most endpoints of an account: every event is written once for each. */
const ENDPOINTS_MAX = 20;
/** Most secrets that sign at the same time: each makes the header longer. */
const SECRETS_MAX = 3;
/** Tries of a rotation. Another process has rotated the secret meanwhile each time. */
const TRIES_MAX = 10;
/** Hint of a refused secret of an endpoint. */
const GENERATED = "Leave it out to have one generated.";
const HOUR_MS = 60 * 60 * 1000;

/** Dependencies of the operations on endpoints. */
export interface EndpointParts {
  readonly records: Records;
  readonly nowMs: () => number;
  /** Reports whether messages may go to a host, judged by its name or literal address. The dial checks the resolved address. */
  readonly allowsHost: (host: string) => boolean;
  /** Serialises rotations by this process: each reads the secrets that the one before wrote. */
  readonly turns: Turns;
}

/** An endpoint with its new secret, generated or given. */
export interface NewSecret {
  readonly endpoint: Endpoint;
  readonly secret: string;
}

/** Registers an endpoint. Throws `invalid_field` for an address that is not allowed, and `too_many_endpoints`. */
export async function createEndpoint(
  parts: EndpointParts,
  accountId: string,
  body: EndpointBody,
): Promise<NewSecret> {
  const url = checkedUrl(parts, body.url);
  const secret = givenSecret(body.secret, GENERATED) ?? newSecret();
  const endpoint = await parts.records.addEndpoint(
    {
      id: newHexId(parts.nowMs()),
      accountId,
      url,
      description: body.description.toWellFormed(),
      events: [...new Set(body.events)],
      secrets: [{ secret, untilMs: null }],
      enabled: true,
      nowIso: nowIso(parts),
    },
    ENDPOINTS_MAX,
  );
  return { endpoint, secret };
}

/** Changes an endpoint. Enabling one does not replay its dead letters; that takes a request of its own. */
export async function changeEndpoint(
  parts: EndpointParts,
  at: EndpointKey,
  body: EndpointChangeBody,
): Promise<Endpoint> {
  const { url, events, description, enabled } = body;
  const change = {
    ...(url === undefined ? {} : { url: checkedUrl(parts, url) }),
    ...(events === undefined ? {} : { events: [...new Set(events)] }),
    ...(description === undefined ? {} : { description: description.toWellFormed() }),
    ...(enabled === undefined ? {} : { enabled }),
  };
  if (Object.keys(change).length === 0) {
    throw new Refusal("invalid_body", "The body names nothing to change.", {
      hint: "Send at least one of url, events, description and enabled.",
    });
  }
  return found(await parts.records.changeEndpoint({ ...at, ...change, nowIso: nowIso(parts) }), at.id);
}

/** Adds a new signing secret. The previous ones keep signing for the overlap. */
export async function rotateSecret(
  parts: EndpointParts,
  at: EndpointKey,
  body: RotateSecretBody,
): Promise<NewSecret> {
  const secret = givenSecret(body.secret, GENERATED) ?? newSecret();
  const key = JSON.stringify(["endpoint", at.accountId, at.id]);
  return parts.turns.run(key, async () => {
    for (let tries = 1; ; tries += 1) {
      try {
        return { endpoint: await addSecret(parts, at, secret, body.overlapHours), secret };
      } catch (error) {
        // Another process has rotated it since it was read.
        if (codeOf(error) !== "endpoint_changed" || tries >= TRIES_MAX) throw error;
      }
    }
  });
}

async function addSecret(
  parts: EndpointParts,
  at: EndpointKey,
  secret: string,
  overlapHours: number,
): Promise<Endpoint> {
  const before = await readEndpoint(parts, at);
  const nowMs = parts.nowMs();
  const untilMs = nowMs + overlapHours * HOUR_MS;
  const old = secretsInForce(before.secrets, nowMs).map((each): SigningSecret => ({
    secret: each.secret,
    untilMs: Math.min(each.untilMs ?? Infinity, untilMs),
  }));
  const secrets = [{ secret, untilMs: null }, ...secretsInForce(old, nowMs)].slice(0, SECRETS_MAX);
  const changed = await parts.records.changeEndpoint({
    ...at,
    secrets,
    expectedSecrets: before.secrets,
    nowIso: nowIso(parts),
  });
  return found(changed, at.id);
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
      "The operator of the service can allow other addresses with kb.webhooks.allow.",
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
