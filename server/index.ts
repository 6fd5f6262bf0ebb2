/** The GraphQL control plane, for programs that embed the runtime and want to serve it. */
export { GraphqlServer, type GraphqlServerOptions, ListenError } from "./http.ts"
