import ipaddr from "ipaddr.js";

/** The hosts and addresses that outgoing requests may reach. */
export interface AddressRules {
  /** Whether the name is on the allow-list; it may then resolve to any address. */
  allowsName(host: string): boolean;
  /** Whether an address may be dialled: it is public or on the allow-list. False for text that is no address. */
  allowsAddress(address: string): boolean;
  /**
   * Checks a host without resolving it. False: a request can never succeed. True: the check at the dial decides.
   */
  mayAllow(host: string): boolean;
}

/** Names that mean this machine, regardless of the resolver (RFC 6761, 6.3). */
const OWN_NAME = /(?:^|\.)localhost$/;
/** Their addresses. */
const OWN_ADDRESSES = ["127.0.0.1", "::1"];

/** Addresses in a public range that are not public: inside Azure machines the platform's services answer there. */
const HOST_SERVICES: ReadonlySet<string> = new Set(["168.63.129.16"]);

/** The public part of IPv6 (RFC 4291, IANA's registry). IPv4-compatible addresses lie outside. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR("2000::/3");

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/**
 * Parses an allow-list. An entry is a name (`wiki.example`), all names below one (`*.example`), an address or a range
 * (`10.0.0.0/8`). Throws a RangeError for any other entry.
 */
export function addressRules(allow: readonly string[]): AddressRules {
  const names = new Set<string>();
  const suffixes: string[] = [];
  const ranges: [Address, number][] = [];
  for (const entry of allow) {
    const range = readRange(entry);
    if (range !== undefined) ranges.push(range);
    else if (!isHostName(entry))
      throw new RangeError(`expected a host name, an address or a range: ${entry}`);
    else if (entry.startsWith("*.")) suffixes.push(plainName(entry.slice(1)));
    else names.add(plainName(entry));
  }
  const allowsName = (host: string): boolean => {
    const name = plainName(host);
    return names.has(name) || suffixes.some((suffix) => name.endsWith(suffix));
  };
  const allowsAddress = (text: string): boolean => {
    const address = readAddress(text);
    return address !== undefined && (isPublic(address) || ranges.some((range) => isWithin(address, range)));
  };
  return {
    allowsName,
    allowsAddress,
    mayAllow: (host) => {
      if (allowsName(host)) return true;
      if (isLiteral(host)) return allowsAddress(host);
      return !OWN_NAME.test(plainName(host)) || OWN_ADDRESSES.some(allowsAddress);
    },
  };
}

/** Whether a text is a valid allow-list entry. */
export function isAllowEntry(entry: string): boolean {
  return readRange(entry) !== undefined || isHostName(entry);
}

/** Whether a host, in URL or socket form, is an address rather than a name. */
export function isLiteral(host: string): boolean {
  return readAddress(host) !== undefined;
}

/**
 * Parses an address: with or without brackets, IPv4 in decimal, hexadecimal, octal and short forms, IPv6 with or without a
 * zone. Returns the IPv4 address of an IPv4-mapped one, as the system would dial it; undefined for a name.
 */
function readAddress(text: string): Address | undefined {
  const bare = text.startsWith("[") && text.endsWith("]") ? text.slice(1, -1) : text;
  return ipaddr.isValid(bare) ? ipaddr.process(bare) : undefined;
}

function isPublic(address: Address): boolean {
  if (address.range() !== "unicast" || HOST_SERVICES.has(address.toString())) return false;
  // `range` excludes the mapped, translated and tunnelled forms of IPv4; this check excludes the rest.
  return address instanceof ipaddr.IPv4 || address.match(GLOBAL_UNICAST);
}

function readRange(entry: string): [Address, number] | undefined {
  if (ipaddr.isValidCIDR(entry)) return ipaddr.parseCIDR(entry);
  const address = readAddress(entry);
  return address === undefined ? undefined : [address, address.kind() === "ipv4" ? 32 : 128];
}

function isWithin(address: Address, [range, bits]: [Address, number]): boolean {
  return address.kind() === range.kind() && address.match(range, bits);
}

/** Letters, digits, hyphens and dots. The last label starts with a letter: with a digit it could be an address. */
function isHostName(entry: string): boolean {
  return /^(?:\*\.)?(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?\.)*[a-z_](?:[a-z0-9_-]*[a-z0-9_])?\.?$/i.test(
    entry,
  );
}

/** Normalises case and the trailing dot, which do not distinguish names. */
function plainName(host: string): string {
  return host.toLowerCase().replace(/\.$/, "");
}

/** Returns the network of a client: an IPv4 address itself, the first 64 bits of IPv6. Returns other text unchanged. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (parsed instanceof ipaddr.IPv4) return parsed.toString();
  return parsed.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(":");
}
