import { builder } from "../builder.ts"

interface PageInfoShape {
  readonly hasNextPage: boolean
  readonly endCursor: string | null
}

export const PageInfoType = builder.objectRef<PageInfoShape>("PageInfo").implement({
  description: "Where a page ends.",
  fields: (t) => ({
    hasNextPage: t.exposeBoolean("hasNextPage", { description: "Whether more items follow." }),
    endCursor: t.exposeString("endCursor", {
      nullable: true,
      description: "Pass it as `after` to read on behind this page.",
    }),
  }),
})
