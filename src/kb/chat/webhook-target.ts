import type { ChatBody } from "../../wire/chat.ts";
import { invalidField, Refusal } from "../resources/refusal.ts";
import type { DeliveryTarget } from "../store/webhooks.ts";
import { checkedUrl, givenSecret } from "../webhooks/endpoints.ts";

/** Headers that the service sets, or that change how a request is read. */
const RESERVED =
  /^(?:webhook-.*|content-type|content-length|content-encoding|transfer-encoding|connection|keep-alive|upgrade|host|te|trailer|expect|user-agent|proxy-.*)$/;
/** Hint of a refused secret: without one, a delivery carries no signature. */
const UNSIGNED = "Leave it out to have the delivery sent unsigned.";
const HEADER_NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * Returns where to deliver the answer of a request; undefined: in the response. Reads both our form, `webhook`, and the original's,
 * `settings.response_format`. Throws `invalid_field`.
 */
export function webhookTarget(
  { webhook, settings }: Pick<ChatBody, "webhook" | "settings">,
  allowsHost: (host: string) => boolean,
): DeliveryTarget | undefined {
  const format = settings?.response_format;
  if (format !== undefined && format.type !== "webhook" && format.type !== "default") {
    throw invalidField("settings.response_format.type", "expected webhook or default");
  }
  if (webhook !== undefined && format?.type === "webhook") {
    throw invalidField("webhook", "expected either webhook or settings.response_format, got both");
  }
  if (webhook !== undefined) {
    const secret = inField("webhook", () => givenSecret(webhook.secret, UNSIGNED));
    return {
      url: inField("webhook", () => checkedUrl({ allowsHost }, webhook.url)),
      ...(secret !== undefined && { secret }),
      headers: checkedHeaders(webhook.headers, "webhook.headers"),
    };
  }
  if (format?.type !== "webhook") return undefined;
  const field = "settings.response_format.cred";
  const { cred } = format;
  if (cred === undefined) throw invalidField(field, "expected an object, got nothing");
  return {
    url: inField(field, () => checkedUrl({ allowsHost }, cred.url)),
    headers: checkedHeaders(cred.headers, `${field}.headers`),
  };
}

function checkedHeaders(
  given: Readonly<Record<string, string>> | undefined,
  field: string,
): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [written, value] of Object.entries(given ?? {})) {
    const name = written.toLowerCase();
    if (!HEADER_NAME.test(name) || !HEADER_VALUE.test(value)) {
      throw invalidField(field, "expected valid names and values of HTTP headers");
    }
    if (RESERVED.test(name)) throw invalidField(field, `${name} is set by the service`);
    headers[name] = value;
  }
  return headers;
}

/** Prefixes the field that a check names with its parent. */
function inField<T>(parent: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof Refusal) || error.field === undefined) throw error;
    const rule = error.message.replace(`${error.field}: `, "");
    throw invalidField(`${parent}.${error.field}`, rule, error.hint);
  }
}
