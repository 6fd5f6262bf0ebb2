/** Where a database is, as it may be shown: its host and name, without the user, the password and the parameters. */
export const shownAddress = (url: string): string => {
  if (!URL.canParse(url)) return "postgres:"
  const { host, pathname, searchParams } = new URL(url)
  return `postgres://${host === "" ? (searchParams.get("host") ?? "") : host}${pathname}`
}

/** The name of the database that an address names, or an empty string. */
export const databaseName = (url: string): string =>
  URL.canParse(url) ? decodeURIComponent(new URL(url).pathname.slice(1)) : ""
