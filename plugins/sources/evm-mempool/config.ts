import { Schema } from "effect"
import { Config as RpcConfig } from "../evm-rpc/config.ts"

const { chain_id, url, urls, ws_url, poll_interval_ms, requests_per_second } = RpcConfig.fields

/** The config of an `evm-mempool` network; each key means what it means for `evm-rpc`, but `ws_url` tells what is pending. */
export const Config = Schema.Struct({ chain_id, url, urls, ws_url, poll_interval_ms, requests_per_second }).check(
  Schema.makeFilter((config) =>
    config.url === undefined && config.urls === undefined
      ? { path: ["urls"], issue: "expected at least one URL of a node, in urls (a list) or url" }
      : undefined,
  ),
)
export type Config = typeof Config.Type
