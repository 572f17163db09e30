import { request } from "undici";
import { KbsyncError } from "../../lib/failure.ts";
import { KEY_HEADER, ROUTES } from "../../wire/routes.ts";
import { LinkAnswer } from "../../wire/session.ts";
import type { ReachedService } from "./compose.ts";

/** Returns the address of the console, without a slash at its end: the public one, if there is one. */
export function consoleAddress({ apiUrl, resourcesUrl }: ReachedService): string {
  return resourcesUrl === undefined ? apiUrl : new URL(resourcesUrl).origin;
}

/** Reports whether the service has a console. One that runs from its sources may not be built. */
export async function hasConsole({ apiUrl }: ReachedService): Promise<boolean> {
  const { statusCode, body } = await request(apiUrl, { method: "HEAD" });
  await body.dump();
  return statusCode === 200;
}

/** Returns a link that signs in to the console once, with the service's own key. */
export async function consoleLink(service: ReachedService, lifeSeconds: number): Promise<string> {
  const { statusCode, body } = await request(`${service.apiUrl}${ROUTES.consoleLinks}`, {
    method: "POST",
    headers: { [KEY_HEADER]: service.pauthkey, "content-type": "application/json" },
    body: JSON.stringify({ lifeSeconds }),
  });
  const answer = LinkAnswer.safeParse(await body.json());
  if (answer.success) return `${consoleAddress(service)}/#link=${answer.data.data.token}`;
  throw new KbsyncError(`the service made no link to its console: it answered ${statusCode}`, {
    code: "service_unreachable",
    subject: service.apiUrl,
    retryable: true,
  });
}
