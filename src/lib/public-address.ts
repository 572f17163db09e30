import ipaddr from "ipaddr.js";

/** Which hosts and addresses may be asked. */
export interface AddressRules {
  /** Whether the name itself is on the allow-list: then it may resolve to whatever it does. */
  allowsName(host: string): boolean;
  /** Whether this address may be dialled: a public one, or one on the allow-list. Text that is no address is refused. */
  allowsAddress(address: string): boolean;
  /**
   * Whether a host may be asked as far as its name or literal tells, without resolving it: what is false here never
   * succeeds, what is true is decided at the dial.
   */
  mayAllow(host: string): boolean;
}

/** Names that mean this machine, whatever a resolver says (RFC 6761, 6.3). */
const OWN_NAME = /(?:^|\.)localhost$/;
/** What they resolve to. */
const OWN_ADDRESSES = ["127.0.0.1", "::1"];

/** Public in name only: inside of every Azure machine the platform's own services answer there. */
const HOST_SERVICES: ReadonlySet<string> = new Set(["168.63.129.16"]);

/** All of IPv6 that is given out for the public (RFC 4291, IANA's registry); IPv4-compatible addresses lie outside. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR("2000::/3");

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/**
 * Reads an allow-list: a name (`wiki.example`), all names below one (`*.example`), an address, or a range
 * (`10.0.0.0/8`). Throws a RangeError on an entry that is none of them.
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

/** Whether an entry can stand in an allow-list. */
export function isAllowEntry(entry: string): boolean {
  return readRange(entry) !== undefined || isHostName(entry);
}

/** Whether a host, as a URL or a socket names it, is an address and no name. */
export function isLiteral(host: string): boolean {
  return readAddress(host) !== undefined;
}

/**
 * The address that a text means: in brackets or not, decimal, hexadecimal, octal and short forms of IPv4, IPv6 with or
 * without a zone. An IPv4-mapped one is the IPv4 address that the system would dial. Undefined for a name.
 */
function readAddress(text: string): Address | undefined {
  const bare = text.startsWith("[") && text.endsWith("]") ? text.slice(1, -1) : text;
  return ipaddr.isValid(bare) ? ipaddr.process(bare) : undefined;
}

function isPublic(address: Address): boolean {
  if (address.range() !== "unicast" || HOST_SERVICES.has(address.toString())) return false;
  // Besides what the ranges name, as mapped, translated and tunnelled forms of IPv4, only the public part is left.
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

/** Letters, digits, hyphens and dots; the last label begins with a letter, for a digit would begin an odd address. */
function isHostName(entry: string): boolean {
  return /^(?:\*\.)?(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?\.)*[a-z_](?:[a-z0-9_-]*[a-z0-9_])?\.?$/i.test(
    entry,
  );
}

/** Names are the same in any case, and with the dot of the root or without. */
function plainName(host: string): string {
  return host.toLowerCase().replace(/\.$/, "");
}

/** Whom an address belongs to, as far as it tells: an IPv4 address by itself, the first 64 bits of an IPv6 one. Text that is no address stays. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (parsed instanceof ipaddr.IPv4) return parsed.toString();
  return parsed.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(":");
}
