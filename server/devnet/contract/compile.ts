import { readFileSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"

const SOURCE = "Token.sol"

/** What the devnet needs of the compiled token. */
export interface Artifact {
  readonly compiler: string
  readonly abi: ReadonlyArray<unknown>
  readonly bytecode: string
}

interface Output {
  readonly errors?: ReadonlyArray<{ readonly severity: string; readonly formattedMessage: string }>
  readonly contracts?: {
    readonly [file: string]: {
      readonly Token: {
        readonly abi: ReadonlyArray<unknown>
        readonly evm: { readonly bytecode: { readonly object: string } }
      }
    }
  }
}

interface Compiler {
  readonly version: () => string
  readonly compile: (input: string) => string
}

/** Compiles the token; throws what the compiler says when it does not compile. */
export const compileToken = (): Artifact => {
  const solc: Compiler = createRequire(import.meta.url)("solc")
  const content = readFileSync(new URL(SOURCE, import.meta.url), "utf8")
  const input = {
    language: "Solidity",
    sources: { [SOURCE]: { content } },
    settings: {
      evmVersion: "paris",
      optimizer: { enabled: true, runs: 200 },
      metadata: { bytecodeHash: "none" },
      outputSelection: { [SOURCE]: { Token: ["abi", "evm.bytecode.object"] } },
    },
  }
  const output: Output = JSON.parse(solc.compile(JSON.stringify(input)))
  const token = output.contracts?.[SOURCE]?.Token
  if (token === undefined) throw new Error((output.errors ?? []).map((error) => error.formattedMessage).join("\n"))
  return { compiler: solc.version(), abi: token.abi, bytecode: `0x${token.evm.bytecode.object}` }
}

if (import.meta.main) {
  writeFileSync(new URL("Token.json", import.meta.url), `${JSON.stringify(compileToken(), null, 2)}\n`)
}
