import { bundlePackages } from "./build.ts"
import { BUNDLE } from "./bundled.ts"

/** Before all tests: makes the bundle that the servers of the tests start from. */
export default async (): Promise<void> => {
  process.env[BUNDLE] = await bundlePackages()
}
