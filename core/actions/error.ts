import { Schema } from "effect"

/** There is no such delivery. */
export class DeliveryNotFound extends Schema.TaggedError<DeliveryNotFound>()("DeliveryNotFound", {
  id: Schema.String,
}) {
  override get message() {
    return `there is no delivery ${this.id} to an action; it may have been removed after its retention`
  }
}

/** A delivery is not in a state in which this can be done with it, or what was given does not fit it. */
export class DeliveryRefused extends Schema.TaggedError<DeliveryRefused>()("DeliveryRefused", {
  id: Schema.String,
  reason: Schema.String,
}) {
  override get message() {
    return `delivery ${this.id}: ${this.reason}`
  }
}

/** An event cannot be emitted in this way. */
export class EmitRefused extends Schema.TaggedError<EmitRefused>()("EmitRefused", {
  type: Schema.String,
  reason: Schema.String,
}) {
  override get message() {
    return `an event "${this.type}" was not emitted: ${this.reason}`
  }
}
