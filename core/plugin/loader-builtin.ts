/**
 * The folders of the plugins that ship with the package, as file URLs ending in `/`: `.ts` files in a checkout, compiled
 * ones in the published package.
 */
export const builtInDirectories: ReadonlyArray<URL> = [
  new URL("../../plugins/sources/", import.meta.url),
  new URL("../../plugins/sinks/", import.meta.url),
]
