import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { digestBody, encodePayload, deliveryId, matchBody, retractedBody } from "../../core/model/sink-event.ts"
import { accepted, deliveriesAt, firstOf, heldAfter, heldFaults, heldOnceAfter } from "./consumer.ts"
import { byPhases, byteFaults, consumerFaults, forkFaults, lifeFaults, unseenRetractions } from "./consumer-faults.ts"
import { type Answer, type Received, respond, startReceiver } from "./receiver.ts"
import { SimulatedChain } from "../../server/devnet/simulated/chain.ts"

interface Sent {
  readonly id: string
  readonly body: string
}

const idOf = (name: string): string => Buffer.from(name).toString("hex").padEnd(64, "0")

/** A match named by its block and its fork, as `8a` and `8b`. */
const payloadOf = (name: string, more: object = {}): string =>
  encodePayload({
    id: idOf(name),
    monitor: "all",
    network: "net",
    event: { block: { number: Number.parseInt(name), hash: `0x${name}` }, log: { index: 0 }, ...more },
  })

const match = (name: string, life = 1, more: object = {}): Sent => ({
  id: deliveryId(idOf(name), life, "match"),
  body: matchBody(payloadOf(name, more)),
})

const retracted = (name: string, life = 1): Sent => ({
  id: deliveryId(idOf(name), life, "retracted"),
  body: retractedBody(idOf(name)),
})

const received = (sent: ReadonlyArray<Sent>, answer: Answer = respond(200)): ReadonlyArray<Received> =>
  sent.map(({ id, body }, order) => ({
    order,
    method: "POST",
    path: "/one",
    headers: { "webhook-id": id },
    body: Buffer.from(body),
    clientPort: 1,
    answer,
  }))

const read = (...sent: ReadonlyArray<Sent>) => deliveriesAt(received(sent), "/one")

const place = (name: string) => ({ monitor: "all", block: Number.parseInt(name), hash: `0x${name}`, index: 0 })

const held = (...names: ReadonlyArray<string>) => new Map(names.map((name) => [idOf(name), place(name)]))

/** Forks by the letters of the names. */
const areOnOneFork = byPhases([{ gone: ["0x8a", "0x9a"], came: ["0x8b", "0x9b", "0x10b"] }])

const REORG = [match("7"), match("8a"), match("9a"), retracted("8a"), retracted("9a"), match("8b"), match("9b")]

describe("the deliveries of a path", () => {
  it("are read with the match's place and life", () => {
    const [first, second, third] = read(match("8a", 2), retracted("8a", 2), retracted("8a"))
    assert.deepInclude(first, { kind: "match", id: idOf("8a"), life: 2, place: place("8a") })
    assert.deepInclude(second, { kind: "retracted", id: idOf("8a"), life: 2, webhookId: `${idOf("8a")}-2-r` })
    assert.deepInclude(third, { kind: "retracted", id: idOf("8a"), life: 1 })
  })

  it("are those of the path alone, in the order of arrival", () => {
    const requests = [...received([match("8a")]), ...received([match("9a")]).map((one) => ({ ...one, path: "/two" }))]
    assert.deepStrictEqual(
      deliveriesAt(requests, "/two").map(({ id }) => id),
      [idOf("9a")],
    )
  })

  it.each([
    ["a match with another webhook-id", { ...match("8a"), id: idOf("9a") }],
    ["a match with the webhook-id of its retraction", { ...match("8a"), id: retracted("8a").id }],
    ["a retraction with the webhook-id of its match", { ...retracted("8a"), id: match("8a").id }],
    ["another type", { id: idOf("8a"), body: digestBody([payloadOf("8a")]) }],
  ])("cannot be read with %s", (_, sent) => {
    assert.throws(() => read(sent), /^request 0 with the webhook-id \w+(-r)? is no delivery that a consumer knows: /)
  })
})

describe("what a consumer holds", () => {
  it("is what was matched and not taken back", () => {
    assert.deepStrictEqual(heldAfter(read(...REORG)), held("7", "8b", "9b"))
  })

  it("is the same when everything comes twice, while it counts each delivery and while it drops repeats", () => {
    const twice = read(...REORG.flatMap((sent) => [sent, sent]))
    assert.deepStrictEqual(heldAfter(twice), held("7", "8b", "9b"))
    assert.deepStrictEqual(heldOnceAfter(twice), held("7", "8b", "9b"))
    assert.strictEqual(firstOf(twice).length, REORG.length)
  })

  it("holds a match again that came back with its next life", () => {
    const back = read(match("8a"), retracted("8a"), match("8a", 2))
    assert.deepStrictEqual(heldAfter(back), held("8a"))
    assert.deepStrictEqual(heldOnceAfter(back), held("8a"))
  })

  it("lacks a match that came back with the life that it had, if repeats are dropped", () => {
    const back = read(match("8a"), retracted("8a"), match("8a"))
    assert.deepStrictEqual(heldAfter(back), held("8a"))
    assert.deepStrictEqual(heldOnceAfter(back), held())
  })

  it("is compared with what is canonical: lost, not canonical, and twice", () => {
    assert.deepStrictEqual(heldFaults(held("7", "8b"), [place("7"), place("8b")]), [])
    assert.deepStrictEqual(heldFaults(held("7"), [place("7"), place("8b")]), ["lost: all 0x8b 0 of block 8"])
    assert.deepStrictEqual(heldFaults(held("8a"), []), [`not canonical: ${idOf("8a")}, all 0x8a 0 of block 8`])
    assert.deepStrictEqual(heldFaults(new Map([...held("7"), ["other", place("7")]]), [place("7")]), [
      `two ids for all 0x7 0: ${idOf("7")} and other`,
    ])
  })
})

describe("the bytes of deliveries", () => {
  it("are the same for the same webhook-id, or that is told", () => {
    assert.deepStrictEqual(byteFaults(read(match("8a"), match("8a"), match("8a", 2, { other: 1 }))), [])
    const [fault, ...others] = byteFaults(read(match("8a"), match("8a", 1, { other: 1 }), match("8a")))
    assert.match(fault!, new RegExp(`^other bytes for ${idOf("8a")}: `))
    assert.deepStrictEqual(others, [])
  })
})

describe("the lives of a match", () => {
  it.each<readonly [string, ReadonlyArray<Sent>]>([
    ["one after the other", [match("8a"), retracted("8a"), match("8a", 2), retracted("8a", 2), match("8a", 3)]],
    ["with repeats", [match("8a"), match("8a"), retracted("8a"), retracted("8a")]],
    ["with one of which nothing came", [match("8a"), retracted("8a"), match("8a", 3)]],
    ["with one of which only the retraction came", [retracted("8a"), match("8a", 2)]],
  ])("are right %s", (_, sent) => {
    assert.deepStrictEqual(lifeFaults(read(...sent)), [])
  })

  it.each<readonly [string, ReadonlyArray<Sent>, string]>([
    ["a retraction before its match", [retracted("8a"), match("8a")], " came after its retraction"],
    ["a match again after its retraction", [match("8a"), retracted("8a"), match("8a")], " came after its retraction"],
    ["the next life before the retraction", [match("8a"), match("8a", 2)], "-2 came while life 1 was there"],
    ["the retraction of a later life", [match("8a"), retracted("8a", 2)], "-2-r came while life 1 was there"],
    ["an earlier life", [match("8a", 2), retracted("8a", 2), match("8a")], " came while life 2 had been taken back"],
    ["a late retraction", [match("8a", 2), retracted("8a")], "-r came while life 2 was there"],
  ])("are wrong with %s", (_, sent, fault) => {
    assert.deepStrictEqual(lifeFaults(read(...sent)), [`${idOf("8a")}${fault}`])
  })

  it("are told when a retraction comes and its match had not", () => {
    assert.deepStrictEqual(unseenRetractions(read(...REORG)), [])
    const late = read(retracted("9a"), match("9a"), match("8a"), retracted("8a", 2))
    assert.deepStrictEqual(unseenRetractions(late), [
      `${idOf("9a")}-r came, and its match had not`,
      `${idOf("8a")}-2-r came, and its match had not`,
    ])
  })
})

describe("the retractions of an invalidation", () => {
  it("come before what replaces what they take back, or that is told", () => {
    assert.deepStrictEqual(forkFaults(read(...REORG), areOnOneFork), [])
    const mixed = read(match("7"), match("8a"), match("9a"), retracted("9a"), match("8b"), retracted("8a"), match("9b"))
    assert.deepStrictEqual(forkFaults(mixed, areOnOneFork), [
      `${idOf("8b")} of block 8 0x8b came while one of 8 0x8a was held`,
    ])
    assert.strictEqual(forkFaults(read(match("9a"), match("8b")), areOnOneFork).length, 1)
    const never = read(match("8a"), retracted("8a"), match("9a"), match("10b"))
    assert.deepStrictEqual(forkFaults(never, areOnOneFork), [
      `${idOf("10b")} of block 10 0x10b came while one of 9 0x9a was held`,
    ])
  })

  it("are no fault when one is repeated later, nor is a match that was found late", () => {
    const repeated = read(match("9a"), match("7"), retracted("9a"), match("8b"), retracted("9a"), match("9b"))
    assert.deepStrictEqual(forkFaults(repeated, areOnOneFork), [])
  })

  it("can be judged by a simulated chain", () => {
    const chain = new SimulatedChain().mine(9)
    const a = chain.head.hash
    chain.reorg(1)
    const b = chain.head.hash
    const at = (name: string, hash: string) => match(name, 1, { block: { number: 9, hash } })
    const onOneFork = chain.areOnOneFork.bind(chain)
    assert.deepStrictEqual(forkFaults(read(at("9a", a), retracted("9a"), at("9b", b)), onOneFork), [])
    assert.strictEqual(forkFaults(read(at("9a", a), at("9b", b)), onOneFork).length, 1)
  })
})

describe("all that is wrong at a path", () => {
  const canonical = ["7", "8b", "9b"].map(place)
  const faultsOf = (requests: ReadonlyArray<Received>) => consumerFaults(requests, "/one", { canonical, areOnOneFork })

  it("is nothing after a reorganisation that was carried out well", () => {
    assert.deepStrictEqual(faultsOf(received(REORG)), [])
  })

  it("is found by each check", () => {
    const without = (sent: Sent) => REORG.filter(({ id }) => id !== sent.id)
    assert.include(faultsOf(received(without(match("8b")))).join("\n"), "all: lost: all 0x8b 0 of block 8")
    assert.include(faultsOf(received(without(retracted("8a")))).join("\n"), "came while one of 8 0x8a was held")
    assert.include(faultsOf(received([...REORG, match("9a")])).join("\n"), "came after its retraction")
    assert.include(faultsOf(received([...REORG, match("7", 1, { other: 1 })])).join("\n"), "other bytes for")
  })

  it("is what a consumer misses that goes by what it accepted", () => {
    const refused = received(REORG).map((one, i) => (i === 6 ? { ...one, answer: respond(500) } : one))
    assert.deepStrictEqual(faultsOf(refused), [
      "taken: lost: all 0x9b 0 of block 9",
      "takenOnce: lost: all 0x9b 0 of block 9",
    ])
  })
})

describe("a receiver", () => {
  it.live("records what it answered", () =>
    Effect.gen(function* () {
      const receiver = yield* startReceiver()
      receiver.next(respond(500), { kind: "reset" })
      for (const name of ["7", "8a", "9a"]) {
        const { id, body } = match(name)
        const request = { method: "POST", headers: { "webhook-id": id }, body }
        yield* Effect.promise(() => fetch(`${receiver.origin}/one`, request).catch(() => null))
      }
      assert.deepStrictEqual(heldAfter(deliveriesAt(receiver.requests, "/one")), held("7", "8a", "9a"))
      assert.deepStrictEqual(heldAfter(deliveriesAt(accepted(receiver.requests), "/one")), held("9a"))
    }),
  )
})
