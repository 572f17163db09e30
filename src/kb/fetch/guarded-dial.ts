import { lookup as systemLookup } from "node:dns";
import type { LookupAddress } from "node:dns";
import type { LookupFunction } from "node:net";
import { buildConnector } from "undici";
import { KbsyncError } from "../../lib/failure.ts";
import { isLiteral } from "../../lib/public-address.ts";
import type { AddressRules } from "../../lib/public-address.ts";

/** Resolves a name to all its addresses; `dns.lookup` in production. */
export type ResolveAll = (
  host: string,
  options: { readonly all: true },
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** Timeout of a connection, with name resolution and TLS handshake. */
const DIAL_TIMEOUT_MS = 10_000;

/**
 * Returns a connector that dials only what the rules allow. Checks every dial, against redirects and DNS rebinding: an address
 * literal before the dial, each address of a name as resolved for this dial, and the peer of the open socket. Refuses a name
 * if any of its addresses is forbidden. Fails with `link_refused`.
 */
export function guardedConnector(
  rules: AddressRules,
  resolve: ResolveAll = systemLookup,
): buildConnector.connector {
  const unchecked = buildConnector({ timeout: DIAL_TIMEOUT_MS, allowH2: false, maxCachedSessions: 0 });
  const lookup: LookupFunction = (host, options, done) => {
    resolve(host, { all: true }, (error, addresses) => {
      if (error !== null) return done(error, []);
      const refused =
        addresses.length === 0 || addresses.some(({ address }) => !rules.allowsAddress(address));
      if (refused) return done(notPublic(host), []);
      if (options.all === true) return done(null, addresses);
      const [first] = addresses;
      return done(null, first?.address ?? "", first?.family ?? 4);
    });
  };
  const checked = buildConnector({ timeout: DIAL_TIMEOUT_MS, allowH2: false, maxCachedSessions: 0, lookup });

  return (options, done) => {
    const { hostname } = options;
    if (rules.allowsName(hostname)) return unchecked(options, done);
    // The system dials a literal without calling the lookup.
    if (isLiteral(hostname) && !rules.allowsAddress(hostname)) return done(notPublic(hostname), null);
    return checked(options, (error, socket) => {
      if (error !== null) return done(error, null);
      // The lookup has checked it already; this covers notations of an address that the checks do not recognise.
      const peer = socket.remoteAddress;
      if (peer !== undefined && rules.allowsAddress(peer)) return done(null, socket);
      socket.destroy();
      return done(notPublic(hostname), null);
    });
  };
}

/** Refusal of a host. Names the host alone, because the addresses it resolves to would reveal the private network. */
export function notPublic(host: string): KbsyncError {
  return new KbsyncError(`${host} is not a public address`, {
    code: "link_refused",
    subject: host,
  });
}
