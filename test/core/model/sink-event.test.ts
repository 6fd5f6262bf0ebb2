import { assert, describe, it } from "vitest"
import {
  deliveryId,
  digestBody,
  digestId,
  encodePayload,
  matchBody,
  retractedBody,
  type SinkEvent,
} from "../../../core/model/sink-event.ts"

const payload = (id: string) => encodePayload({ id, monitor: "m", network: "n", event: { kind: "block" } })

describe("what a sink is sent", () => {
  it("is one of three tagged shapes", () => {
    const bodies: { readonly [type in SinkEvent["type"]]: string } = {
      match: matchBody(payload("a")),
      retracted: retractedBody("a"),
      digest: digestBody([payload("a"), payload("b")]),
    }
    assert.deepStrictEqual(bodies, {
      match: '{"type":"match","id":"a","monitor":"m","network":"n","event":{"kind":"block"}}',
      retracted: '{"type":"retracted","match_id":"a"}',
      digest:
        '{"type":"digest","matches":[{"id":"a","monitor":"m","network":"n","event":{"kind":"block"}},' +
        '{"id":"b","monitor":"m","network":"n","event":{"kind":"block"}}]}',
    })
  })

  it("has an id for each life and its retraction, a digest one for its members in their lives", () => {
    assert.deepStrictEqual(
      [1, 2].flatMap((life) => [deliveryId("a", life, "match"), deliveryId("a", life, "retracted")]),
      ["a", "a-r", "a-2", "a-2-r"],
    )
    const digests = [
      ["a", "b"],
      ["b", "a"],
      ["a", "b", "c"],
    ].map((ids) => digestId(ids.map((matchId) => ({ matchId, life: 1 }))))
    digests.push(digestId(["a", "b"].map((matchId) => ({ matchId, life: 2 }))))
    assert.strictEqual(new Set(digests).size, 4)
    assert.strictEqual(digests[0], "c8687a08aa5d6ed2044328fa6a697ab8e96dc34291e8c2034ae8c38e6fcc6d65")
  })
})
