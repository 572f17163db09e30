import { createHash } from "node:crypto";
import type { AuthorizationRequest } from "./authorize.ts";
import { isLocal } from "./clients.ts";

const STYLE =
  "body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:3rem auto;padding:0 1rem}" +
  "dt{font-weight:600}dd{margin:0 0 .8rem;overflow-wrap:anywhere}.problem{color:#b00020}" +
  "input{font:inherit;width:100%;box-sizing:border-box;padding:.4rem}button{font:inherit;padding:.4rem 1rem;margin:1rem .5rem 0 0}";
const STYLE_SHA256 = createHash("sha256").update(STYLE).digest("base64");

/** The contents of the page besides the request. */
export interface ConsentFacts {
  /** The form's proof that this server made it. */
  readonly signed: string;
  /** Path that the form is sent to. */
  readonly action: string;
  readonly problem?: string;
}

/** Returns the page on which a person allows a client to read. It works without scripts. */
export function consentPage(request: AuthorizationRequest, facts: ConsentFacts): string {
  const { clientId, clientName, redirectUri } = request;
  const local = isLocal(redirectUri)
    ? "<p><strong>The answer goes to a program on your own machine.</strong> Any program there can use the client's name. Go on only if you have just started the sign-in yourself.</p>"
    : "";
  const problem =
    facts.problem === undefined ? "" : `<p class="problem" role="alert">${escape(facts.problem)}</p>`;
  return page(
    "Give access to the knowledge base?",
    `<dl><dt>Client</dt><dd>${escape(clientName)}</dd><dt>Of</dt><dd>${escape(new URL(clientId).host)}</dd>` +
      `<dt>The answer goes to</dt><dd>${escape(redirectUri)}</dd></dl>${local}` +
      "<p>It will be able to search and read all documents that your key can read. To end that, revoke its key or yours with <code>kbsync key revoke</code>; after 30 days without use it ends by itself.</p>" +
      `${problem}<form method="post" action="${escape(facts.action)}"><input type="hidden" name="request" value="${escape(facts.signed)}">` +
      '<label>Your key of the service<br><input type="password" name="key" autocomplete="off" maxlength="4096"></label><br>' +
      '<button name="decision" value="allow">Allow</button><button name="decision" value="deny">Deny</button></form>',
  );
}

/** Returns the page for a request that is refused. It links nowhere: the request may come from anybody. */
export function refusalPage(message: string): string {
  return page(
    "This request cannot be answered",
    `<p>${escape(message)}</p><p>Start again in your client.</p>`,
  );
}

/**
 * Headers of a page: no scripts, no frames, no caches; a form that goes to this server and from there to `target`. Browsers apply
 * the policy to all redirects that follow, and a policy cannot name an IPv6 address: the scheme alone is fixed.
 */
export function pageHeaders(target?: string): Record<string, string> {
  const form = target === undefined ? "'none'" : `'self' https:${isLocal(target) ? " http:" : ""}`;
  return {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": `default-src 'none'; style-src 'sha256-${STYLE_SHA256}'; form-action ${form}; frame-ancestors 'none'; base-uri 'none'`,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    // Browsers send the form's Origin only where its page may be named.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
  };
}

function page(title: string, body: string): string {
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title><style>${STYLE}</style><h1>${title}</h1>${body}</html>`;
}

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
