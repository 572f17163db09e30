import { request } from "undici";
import { ROUTES } from "../../wire/routes.ts";
import { LinkAnswer } from "../../wire/session.ts";
import type { ReachedService } from "./embedded-service.ts";
import { askService } from "./service-call.ts";

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
  const { data } = await askService(
    service,
    {
      method: "POST",
      path: ROUTES.consoleLinks,
      what: "a request for a link to its console",
      body: { lifeSeconds },
    },
    LinkAnswer,
  );
  return `${consoleAddress(service)}/#link=${data.token}`;
}
