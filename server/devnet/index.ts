export { type Anvil, type AnvilOptions, startAnvil } from "./anvil.ts"
export { type Devnet, startDevnet } from "./devnet.ts"
export { DevnetError } from "./error.ts"
