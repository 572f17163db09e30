import { lookup as systemLookup } from "node:dns";
import type { LookupAddress } from "node:dns";
import type { LookupFunction } from "node:net";
import { buildConnector } from "undici";
import { KbsyncError } from "../../lib/failure.ts";
import { isLiteral } from "../../lib/public-address.ts";
import type { AddressRules } from "../../lib/public-address.ts";

/** Resolves a name to all of its addresses; `dns.lookup` in the running service. */
export type ResolveAll = (
  host: string,
  options: { readonly all: true },
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** Time to reach a server, names resolved and TLS agreed on. */
const DIAL_TIMEOUT_MS = 10_000;

/**
 * Dials only what the rules allow. Each dial is checked by itself, so that neither a redirect nor a name that resolves
 * otherwise a moment later leads elsewhere: an address literal before the dial, each address of a name as it is
 * resolved for this dial, and the peer of the open socket once more. A name with one forbidden address is refused
 * whole. Fails with code `link_refused`.
 */
export function guardedConnector(
  rules: AddressRules,
  resolve: ResolveAll = systemLookup,
): buildConnector.connector {
  const anything = buildConnector({ timeout: DIAL_TIMEOUT_MS, allowH2: false, maxCachedSessions: 0 });
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
    if (rules.allowsName(hostname)) return anything(options, done);
    // The system dials a literal without asking the lookup.
    if (isLiteral(hostname) && !rules.allowsAddress(hostname)) return done(notPublic(hostname), null);
    return checked(options, (error, socket) => {
      if (error !== null) return done(error, null);
      // The lookup has answered for it already; this is for ways of naming an address that nobody here knows of.
      const peer = socket.remoteAddress;
      if (peer !== undefined && rules.allowsAddress(peer)) return done(null, socket);
      socket.destroy();
      return done(notPublic(hostname), null);
    });
  };
}

/** The refusal of a host. It names that alone: an address that it resolves to inside of this network is nobody's business. */
export function notPublic(host: string): KbsyncError {
  return new KbsyncError(`${host} is not a public address`, {
    code: "link_refused",
    subject: host,
  });
}
