import ipaddr from "ipaddr.js"

type Address = ipaddr.IPv4 | ipaddr.IPv6
type Range = readonly [Address, number]

/**
 * Every range that is not the public internet: private, shared, link-local, translated, documentation, multicast and
 * reserved addresses. IPv6 is public only inside 2000::/3, which the last three ranges leave out. An IPv4-mapped IPv6
 * address stands for its IPv4 address; a NAT64 one does not, since what it reaches depends on the network.
 */
const NOT_PUBLIC = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
  "2001::/23",
  "2001:db8::/32",
  "2002::/16",
  "3fff::/20",
  "::/3",
  "4000::/2",
  "8000::/1",
]

const LOOPBACK = ["127.0.0.0/8", "::1/128"]

// An obsolete form of IPv6 that ipaddr.js takes for the IPv4 address in it, which is not what would be dialled.
const IPV4_COMPATIBLE = /^::\d+\.\d+\.\d+\.\d+$/

const parseRange = (cidr: string): Range => ipaddr.parseCIDR(cidr)

const contains =
  (ranges: ReadonlyArray<Range>) =>
  (address: Address): boolean =>
    ranges.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits))

const isNotPublic = contains(NOT_PUBLIC.map(parseRange))
const isLoopback = contains(LOOPBACK.map(parseRange))

/** True for a range such as `10.0.0.0/8` or `fd00::/8`, written in full. */
export const isCidr = (text: string): boolean =>
  ipaddr.IPv4.isValidCIDRFourPartDecimal(text) || ipaddr.IPv6.isValidCIDR(text)

/**
 * Says whether an address may be dialled, as a policy wants it: public ones always, loopback and other ranges if the
 * policy names them. `allow` holds valid CIDRs. What is no address may not be dialled.
 */
export const addressFilter = (policy: { readonly loopback: boolean; readonly allow: ReadonlyArray<string> }) => {
  const isAllowed = contains(policy.allow.map(parseRange))
  return (text: string): boolean => {
    if (!ipaddr.isValid(text) || IPV4_COMPATIBLE.test(text)) return false
    const address = ipaddr.process(text)
    return !isNotPublic(address) || (policy.loopback && isLoopback(address)) || isAllowed(address)
  }
}
