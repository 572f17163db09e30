import { describe, expect, it } from "vitest";
import { addressRules, isAllowEntry, networkOf } from "../../src/lib/public-address.ts";

const nothingMore = addressRules([]);
/** The host as the URL parser returns it, which is what a dial sees. */
const hostOf = (address: string): string => new URL(`http://${address}/`).hostname;

describe("an address that is not public is refused in every notation", () => {
  it.each([
    ["loopback", "127.0.0.1"],
    ["all of loopback", "127.8.9.10"],
    ["decimal", "2130706433"],
    ["hexadecimal", "0x7f000001"],
    ["hexadecimal by parts", "0x7f.0x0.0x0.0x1"],
    ["octal", "0177.0.0.1"],
    ["octal with more zeros", "00000177.0.0.01"],
    ["mixed", "0x7f.1"],
    ["short", "127.1"],
    ["very short", "0"],
    ["with the dot of the root", "127.0.0.1."],
    ["full-width digits", "１２７.０.０.１"],
    ["a circled digit", "①27.0.0.1"],
    ["an ideographic full stop", "127。0。0。1"],
    ["percent escapes", "%31%32%37.0.0.1"],
    ["unspecified", "0.0.0.0"],
    ["this network", "0.1.2.3"],
    ["private 10/8", "10.1.2.3"],
    ["private 172.16/12", "172.31.255.255"],
    ["private 192.168/16", "192.168.1.1"],
    ["private in decimal", "3232235777"],
    ["carrier-grade", "100.64.0.1"],
    ["link-local", "169.254.1.1"],
    ["cloud metadata", "169.254.169.254"],
    ["cloud metadata in hexadecimal", "0xa9fea9fe"],
    ["Azure's host service", "168.63.129.16"],
    ["Oracle's metadata", "192.0.0.192"],
    ["documentation", "192.0.2.1"],
    ["benchmarks", "198.18.0.1"],
    ["6to4 relays", "192.88.99.1"],
    ["multicast", "224.0.0.1"],
    ["reserved", "240.0.0.1"],
    ["broadcast", "255.255.255.255"],
    ["IPv6 loopback", "[::1]"],
    ["IPv6 loopback in full", "[0:0:0:0:0:0:0:1]"],
    ["IPv6 unspecified", "[::]"],
    ["mapped", "[::ffff:127.0.0.1]"],
    ["mapped in hexadecimal", "[::ffff:7f00:1]"],
    ["mapped in full", "[0:0:0:0:0:ffff:a9fe:a9fe]"],
    ["compatible", "[::127.0.0.1]"],
    ["compatible in hexadecimal", "[::7f00:1]"],
    ["translated (RFC 6145)", "[::ffff:0:7f00:1]"],
    ["NAT64", "[64:ff9b::7f00:1]"],
    ["NAT64, local use", "[64:ff9b:1::a00:1]"],
    ["6to4", "[2002:7f00:1::]"],
    ["Teredo", "[2001::1]"],
    ["unique local", "[fd00:ec2::254]"],
    ["link-local IPv6", "[fe80::1]"],
    ["site-local", "[fec0::1]"],
    ["discard", "[100::1]"],
    ["IPv6 documentation", "[2001:db8::1]"],
    ["newer documentation", "[3fff::1]"],
    ["segment routing", "[5f00::1]"],
    ["ORCHID", "[2001:20::1]"],
    ["outside of what is given out", "[4000::1]"],
    ["multicast IPv6", "[ff02::1]"],
  ])("refuses %s: %s", (_name, address) => {
    expect(nothingMore.allowsAddress(hostOf(address))).toBe(false);
  });

  it.each([
    ["a zone", "fe80::1%eth0"],
    ["loopback with a zone", "::1%lo"],
    ["a zone on a public one is judged by the address", "fe80::1%25eth0"],
    ["raw octal, as a resolver may take it", "0177.0.0.1"],
    ["raw hexadecimal", "0x7f000001"],
    ["a name", "localhost"],
    ["nothing", ""],
  ])("refuses the socket form of %s: %s", (_name, address) => {
    expect(nothingMore.allowsAddress(address)).toBe(false);
  });
});

it.each([
  "8.8.8.8",
  "93.184.216.34",
  "172.32.0.1",
  "100.128.0.1",
  "134744072",
  "[2606:4700::1111]",
  "[::ffff:8.8.8.8]",
])("the public address %s is allowed", (address) => {
  expect(nothingMore.allowsAddress(hostOf(address))).toBe(true);
});

describe("the allow-list", () => {
  const rules = addressRules([
    "wiki.example",
    "*.corp.example",
    "10.0.0.0/8",
    "192.168.7.7",
    "fd00::/8",
    "intranet",
  ]);

  it.each([
    ["the name", "wiki.example", true],
    ["in capitals", "WIKI.Example", true],
    ["with the root's dot", "wiki.example.", true],
    ["a name below it", "a.wiki.example", false],
    ["a name that ends so", "xwiki.example", false],
    ["below a suffix", "a.b.corp.example", true],
    ["the suffix itself", "corp.example", false],
    ["a name that ends like the suffix", "evilcorp.example", false],
    ["a name of one label", "intranet", true],
  ])("the allow-list opens names: %s", (_name, host, allowed) => {
    expect(rules.allowsName(host)).toBe(allowed);
  });

  it.each([
    ["in the range", "10.200.0.1", true],
    ["in the range, mapped", "[::ffff:10.200.0.1]", true],
    ["in the range, decimal", "167772161", true],
    ["out of the range", "11.0.0.1", true],
    ["another private one", "192.168.7.8", false],
    ["one address", "192.168.7.7", true],
    ["IPv6", "[fd12::1]", true],
    ["still closed", "127.0.0.1", false],
  ])("the allow-list opens addresses: %s", (_name, address, allowed) => {
    expect(rules.allowsAddress(hostOf(address))).toBe(allowed);
  });

  it.each(["http://wiki.example", "10.0.0.0/33", "a b", "", "*", "*.*", "wiki.example:80", "-a.example"])(
    "the allow-list refuses the entry %j",
    (entry) => {
      expect(isAllowEntry(entry)).toBe(false);
      expect(() => addressRules([entry])).toThrow(RangeError);
    },
  );
});

describe("mayAllow, which checks a host without resolving it", () => {
  it.each([
    ["a name that somebody has to resolve", "example.com", [], true],
    ["a public address", "93.184.215.14", [], true],
    ["a private address", "10.0.0.1", [], false],
    ["the same, on the list", "10.0.0.1", ["10.0.0.0/8"], true],
    ["this machine's name", "localhost", [], false],
    ["a name below it", "Hooks.LOCALHOST.", [], false],
    ["a name that only ends so", "notlocalhost", [], true],
    ["this machine's name, on the list", "localhost", ["localhost"], true],
    ["this machine's name, its address on the list", "localhost", ["127.0.0.0/8"], true],
  ])("decides by its name whether a host may be allowed: %s", (_name, host, allow, may) => {
    expect(addressRules(allow).mayAllow(host)).toBe(may);
  });
});

describe("the network of an address", () => {
  it.each([
    ["192.0.2.1", "192.0.2.1"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["2001:db8:1:2::1", "2001:db8:1:2"],
    ["2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2"],
    ["2001:db8:1:3::1", "2001:db8:1:3"],
    ["fe80::1%eth0", "fe80:0:0:0"],
    ["::1", "0:0:0:0"],
    ["no address", "no address"],
  ])("the network of %s is %s", (address, network) => {
    expect(networkOf(address)).toBe(network);
  });
});
