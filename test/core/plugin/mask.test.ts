import { Result } from "effect"
import { describe, expect, it } from "vitest"
import { maskConfig, unmaskConfig } from "../../../core/plugin/mask.ts"

const sensitive = ["url", "urls.*", "headers.*", "deep.*.key"]

describe("maskConfig", () => {
  it.each([
    ["env:ALERTS_URL", "env:ALERTS_URL"],
    ["file:/run/secrets/url", "file:/run/secrets/url"],
    ["env:not a name", "***"],
    ["https://host", "https://host"],
    ["https://host:8545/", "https://host:8545/"],
    ["http://[::1]:8545", "http://[::1]:8545"],
    ["https://host/v2/key", "https://host/***"],
    ["https://host?key=1", "https://host/***"],
    ["https://host/#key", "https://host/***"],
    ["https://user:pass@host:99/", "https://host:99/***"],
    ["https://token@host", "https://host/***"],
    ["wss://host/ws/key", "wss://host/***"],
    ["https://host//", "https://host/***"],
    ["mailto:someone@example.org", "***"],
    ["Bearer abc", "***"],
    ["", "***"],
    [7, "***"],
    [{ a: 1 }, "***"],
    [null, null],
  ])("shows %j as %j", (value, shown) => {
    expect(maskConfig({ url: value }, sensitive)).toStrictEqual({ url: shown })
  })

  it("masks what the paths name and nothing else", () => {
    const config = {
      chain_id: 1,
      url_secret: "env:X",
      urls: ["https://a/key", "env:B"],
      headers: { Authorization: "Bearer x", "X-Plain": "y" },
      deep: [{ key: "k", other: "o" }, "text"],
      other: { url: "https://a/shown" },
    }
    const before = structuredClone(config)
    expect(maskConfig(config, sensitive)).toStrictEqual({
      ...config,
      urls: ["https://a/***", "env:B"],
      headers: { Authorization: "***", "X-Plain": "***" },
      deep: [{ key: "***", other: "o" }, "text"],
    })
    expect(config).toStrictEqual(before)
  })
})

describe("unmaskConfig", () => {
  const stored = {
    url: "https://host/secret",
    urls: ["https://a/1", "https://b/2", "https://a/3"],
    headers: { Authorization: "Bearer x" },
    deep: [{ key: "k" }],
  }
  const unmask = (input: unknown, before: unknown = stored) => unmaskConfig(input, before, sensitive)

  it("gives back the stored config for what was shown of it", () => {
    expect(unmask(maskConfig(stored, sensitive))).toStrictEqual(Result.succeed(stored))
  })

  it("takes new values as they are", () => {
    const input = {
      url: "https://other/new",
      urls: ["env:A"],
      headers: { Authorization: "Bearer y", New: "z" },
      more: "***",
    }
    expect(unmask(input)).toStrictEqual(Result.succeed(input))
    expect(unmask(input, undefined)).toStrictEqual(Result.succeed(input))
  })

  it("finds the entries of a list that were moved, each once", () => {
    expect(unmask({ urls: ["https://b/***", "https://a/***"] })).toStrictEqual(
      Result.succeed({ urls: ["https://b/2", "https://a/1"] }),
    )
    expect(unmask({ urls: ["https://new/", "https://a/***", "https://a/***", "https://b/***"] })).toStrictEqual(
      Result.succeed({ urls: ["https://new/", "https://a/1", "https://a/3", "https://b/2"] }),
    )
  })

  it("refuses masks of nothing stored, all at once, without sending them on", () => {
    const result = unmask({
      url: "https://elsewhere/***",
      urls: ["https://c/***"],
      headers: { Other: "***" },
      deep: [{ key: "***" }, { key: "***" }],
    })
    expect(Result.isFailure(result) && result.failure.map(({ path }) => path)).toStrictEqual([
      "url",
      "urls.0",
      "headers.Other",
      "deep.1.key",
    ])
    expect(Result.isFailure(result) && result.failure[0]?.message).toMatch(
      /"https:\/\/elsewhere\/\*\*\*".*write the value itself/,
    )
    expect(Result.isFailure(unmask({ url: "***" }, undefined))).toBe(true)
  })
})
