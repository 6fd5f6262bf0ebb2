import { Schema } from "effect"

/** An action did with its EntityManager what it cannot do: a mistake of the program. Nothing was written. */
export class StagingRefused extends Schema.TaggedError<StagingRefused>()("StagingRefused", {
  reason: Schema.String,
}) {
  override get message() {
    return this.reason
  }
}

/** An action came upon an entity of another tenant than its event's. Nothing was written. */
export class TenantViolation extends Schema.TaggedError<TenantViolation>()("TenantViolation", {
  entity: Schema.String,
  tenant: Schema.String,
  reason: Schema.String,
}) {
  override get message() {
    return `entity ${this.entity}: ${this.reason}; this action runs for tenant "${this.tenant}" and may use only what is its own`
  }
}
