import { readFileSync } from "node:fs"
import {
  buildSchema,
  type GraphQLNamedType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
} from "graphql"
import { assert, describe, it } from "vitest"
import { printedSchema } from "../../server/graphql/print.ts"
import { schema } from "../../server/graphql/schema.ts"

const contract = buildSchema(readFileSync(new URL("contract.graphql", import.meta.url), "utf8"))
const named = (types: Readonly<Record<string, GraphQLNamedType>>) =>
  Object.values(types).filter(({ name }) => !name.startsWith("__"))

/** What a type promises, one line each. */
const promises = (type: GraphQLNamedType): Array<string> => {
  if (isEnumType(type)) return type.getValues().map(({ name }) => `enum ${type.name}.${name}`)
  if (isInputObjectType(type)) {
    return Object.values(type.getFields()).map(
      (field) => `input ${type.name}.${field.name}: ${field.type} = ${JSON.stringify(field.defaultValue)}`,
    )
  }
  if (isObjectType(type) || isInterfaceType(type)) {
    const kind = isObjectType(type) ? "type" : "interface"
    return [
      ...type.getInterfaces().map((parent) => `${type.name} implements ${parent.name}`),
      ...Object.values(type.getFields()).flatMap((field) => [
        `${kind} ${type.name}.${field.name}: ${field.type}`,
        ...field.args.map(
          (arg) => `arg ${type.name}.${field.name}(${arg.name}: ${arg.type} = ${JSON.stringify(arg.defaultValue)})`,
        ),
      ]),
    ]
  }
  return [`scalar ${type.name}`]
}

describe("the schema", () => {
  it("is what schema.graphql says (npm run schema prints it)", () => {
    assert.strictEqual(readFileSync(new URL("../../schema.graphql", import.meta.url), "utf8"), printedSchema())
  })

  it("keeps every name and type of the contract", () => {
    const offered = new Set(named(schema.getTypeMap()).flatMap(promises))
    const missing = named(contract.getTypeMap())
      .flatMap(promises)
      .filter((promise) => !offered.has(promise))
    assert.deepEqual(missing, [])
  })

  it("describes every type, field, argument and value for readers of GraphiQL", () => {
    const bare: Array<string> = []
    for (const type of named(schema.getTypeMap())) {
      if (["Boolean", "Int", "Float", "String", "ID"].includes(type.name)) continue
      if (!type.description) bare.push(type.name)
      if (isEnumType(type))
        for (const value of type.getValues()) if (!value.description) bare.push(`${type.name}.${value.name}`)
      if (!isObjectType(type) && !isInterfaceType(type) && !isInputObjectType(type)) continue
      for (const field of Object.values(type.getFields())) {
        if (!field.description) bare.push(`${type.name}.${field.name}`)
        if ("args" in field)
          for (const arg of field.args) if (!arg.description) bare.push(`${type.name}.${field.name}(${arg.name})`)
      }
    }
    assert.deepEqual(bare, [])
  })
})
