import { Layer } from "effect"
import { layerSqlite } from "../../../../core/storage/sqlite/layer.ts"
import { storageContract } from "../contract.ts"
import { databaseFiles } from "./files.ts"

const file = databaseFiles()
let files = 0

storageContract("sqlite in memory", () => Layer.fresh(layerSqlite({ path: ":memory:" })))
storageContract("sqlite in a file", () => layerSqlite({ path: file(`${++files}/storage.db`) }))
