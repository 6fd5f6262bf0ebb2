/** Text of others as one line: receivers write into reasons, and nothing of it may reach the terminal as a command. */
export const oneLine = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, " ")
