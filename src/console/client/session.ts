import { signal } from "@preact/signals";
import { replaceAddress } from "../view/router.ts";
import { ROUTES } from "../../wire/routes.ts";
import type { Me, MeAnswer } from "../../wire/session.ts";
import { ask, RequestError, signedIn } from "./api.ts";

/** The signed-in key. Undefined: not known yet; null: nobody is signed in. */
export const me = signal<Me | null | undefined>(undefined);

/** Signs in with the link in the address, if there is one, or finds the session of the cookie. */
export async function findSession(): Promise<void> {
  const link = LINK.exec(location.hash)?.[1];
  if (link !== undefined) {
    // Off the address bar and the history before anything else: it works once, and a person may copy the address.
    replaceAddress("#/");
    try {
      await signIn({ link });
      return;
    } catch (error) {
      if (!(error instanceof RequestError) || error.code !== "sign_in_link_ended") throw error;
      linkProblem.value = error.message;
    }
  }
  try {
    me.value = (await ask<MeAnswer>(ROUTES.me, { once: true })).data;
  } catch (error) {
    if (error instanceof RequestError && error.status === 401) me.value = null;
    else throw error;
  }
}

/**
 * Signs in with a link that is opened in this tab, whose address differs from the page's only after `#`: the browser does not
 * reload the page.
 */
export function followLinks(): void {
  addEventListener("hashchange", () => {
    if (!LINK.test(location.hash)) return;
    findSession().catch((error: unknown) => {
      linkProblem.value = error instanceof Error ? error.message : String(error);
    });
  });
}

const LINK = /^#link=(.+)$/;

/** Why the link of the address did not sign in. */
export const linkProblem = signal<string | undefined>(undefined);

/** Exchanges a key or a link for a session. The browser keeps neither. */
export async function signIn(body: { readonly key: string } | { readonly link: string }): Promise<void> {
  me.value = (await ask<MeAnswer>(ROUTES.consoleSession, { method: "POST", body, once: true })).data;
  linkProblem.value = undefined;
  signedIn();
}

/** Ends the session. */
export async function signOut(): Promise<void> {
  await ask(ROUTES.consoleSession, { method: "DELETE", once: true });
  me.value = null;
}

/** Whether the signed-in key has a scope. */
export function may(scope: Me["key"]["scopes"][number]): boolean {
  const scopes = me.value?.key.scopes ?? [];
  return scopes.includes(scope) || scopes.includes("admin");
}
