import { defineEntity, p } from "@mikro-orm/core"

/** A network resource; `definition` is its JSON. */
export const NetworkEntity = defineEntity({
  name: "Network",
  tableName: "networks",
  properties: { id: p.text().primary(), definition: p.text(), revision: p.text() },
})

/** A monitor resource. Its effective position is where its present `matchRevision` began, null before its first batch. */
export const MonitorEntity = defineEntity({
  name: "Monitor",
  tableName: "monitors",
  properties: {
    id: p.text().primary(),
    network: p.text(),
    definition: p.text(),
    revision: p.text(),
    matchRevision: p.text().fieldName("match_revision"),
    effectivePrimary: p.bigint("number").fieldName("effective_primary").nullable(),
    effectiveSecondary: p.bigint("number").fieldName("effective_secondary").nullable(),
  },
})

/** A sink resource; `definition` is its JSON, `paused` why it rests. */
export const SinkEntity = defineEntity({
  name: "Sink",
  tableName: "sinks",
  properties: { id: p.text().primary(), definition: p.text(), revision: p.text(), paused: p.text().nullable() },
})

/** The seed file that was last applied to a resource; stays when the resource is deleted. */
export const SeedEntity = defineEntity({
  name: "Seed",
  tableName: "seeds",
  properties: { kind: p.text().primary(), id: p.text().primary(), path: p.text(), hash: p.text() },
})
