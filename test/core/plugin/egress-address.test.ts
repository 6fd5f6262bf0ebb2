import { assert, describe, it } from "@effect/vitest"
import { addressFilter, isCidr } from "../../../core/plugin/egress-address.ts"

const nobody = addressFilter({ loopback: false, allow: [] })

describe("an egress policy that allows nothing beside the public internet", () => {
  it.each([
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.1",
    "169.253.255.255",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2a00:1450:4001:80b::200e",
    "2001:4860:4860::8888",
    "::ffff:8.8.8.8",
    "::ffff:808:808",
  ])("dials %s", (address) => assert.isTrue(nobody(address)))

  it.each([
    ["this host", "0.0.0.0"],
    ["this network", "0.1.2.3"],
    ["private", "10.0.0.1"],
    ["private", "10.255.255.255"],
    ["shared (carrier-grade NAT)", "100.64.0.1"],
    ["shared (carrier-grade NAT)", "100.127.255.255"],
    ["loopback", "127.0.0.1"],
    ["loopback", "127.255.255.254"],
    ["link-local, cloud metadata", "169.254.169.254"],
    ["private", "172.16.0.1"],
    ["private", "172.31.255.255"],
    ["protocol assignments", "192.0.0.170"],
    ["documentation", "192.0.2.1"],
    ["6to4 relay", "192.88.99.1"],
    ["private", "192.168.0.1"],
    ["benchmarks", "198.19.255.255"],
    ["documentation", "198.51.100.1"],
    ["documentation", "203.0.113.1"],
    ["multicast", "224.0.0.1"],
    ["multicast", "239.255.255.255"],
    ["reserved", "240.0.0.1"],
    ["broadcast", "255.255.255.255"],
    ["unspecified", "::"],
    ["loopback", "::1"],
    ["IPv4-compatible loopback", "::127.0.0.1"],
    ["mapped loopback", "::ffff:127.0.0.1"],
    ["mapped loopback", "::ffff:7f00:1"],
    ["mapped private", "::ffff:10.0.0.1"],
    ["mapped metadata", "::ffff:a9fe:a9fe"],
    ["NAT64 of loopback", "64:ff9b::7f00:1"],
    ["NAT64 of a public address", "64:ff9b::808:808"],
    ["local NAT64", "64:ff9b:1::1"],
    ["discard", "100::1"],
    ["Teredo", "2001::1"],
    ["ORCHID", "2001:20::1"],
    ["documentation", "2001:db8::1"],
    ["documentation", "3fff::1"],
    ["6to4 of a private address", "2002:a00:1::1"],
    ["segment routing", "5f00::1"],
    ["unique local", "fc00::1"],
    ["unique local", "fd12:3456:789a::1"],
    ["link-local", "fe80::1"],
    ["link-local with a zone", "fe80::1%eth0"],
    ["site-local", "fec0::1"],
    ["multicast", "ff02::1"],
    ["no address", "example.org"],
    ["no address", ""],
  ])("does not dial %s: %s", (_what, address) => assert.isFalse(nobody(address)))
})

describe("an egress policy with loopback", () => {
  const mayDial = addressFilter({ loopback: true, allow: [] })

  it.each(["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])("dials %s", (address) =>
    assert.isTrue(mayDial(address)),
  )

  it.each(["0.0.0.0", "::", "10.0.0.1", "64:ff9b::7f00:1", "::127.0.0.1"])("does not dial %s", (address) =>
    assert.isFalse(mayDial(address)),
  )
})

describe("an egress policy with CIDRs", () => {
  const mayDial = addressFilter({ loopback: false, allow: ["10.1.0.0/16", "192.168.7.9/32", "fd00:1::/32"] })

  it.each(["10.1.0.0", "10.1.255.255", "::ffff:10.1.2.3", "192.168.7.9", "fd00:1::5", "8.8.8.8"])(
    "dials %s",
    (address) => assert.isTrue(mayDial(address)),
  )

  it.each(["10.2.0.0", "10.0.255.255", "192.168.7.8", "fd00:2::5", "127.0.0.1", "::1"])("does not dial %s", (address) =>
    assert.isFalse(mayDial(address)),
  )
})

describe("a CIDR", () => {
  it.each(["10.0.0.0/8", "0.0.0.0/0", "192.168.1.5/32", "fd00::/8", "::/0"])("is %s", (text) =>
    assert.isTrue(isCidr(text)),
  )

  it.each(["10.0.0.1", "10/8", "10.0.0.0/33", "0x0a.0.0.0/8", "fd00::", "fd00::/129", "example.org/8", ""])(
    "is not '%s'",
    (text) => assert.isFalse(isCidr(text)),
  )
})
