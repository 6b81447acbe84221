/** Longest delay that Node's timers take, in milliseconds: 24.8 days. They fire at once for anything longer. */
export const MAX_TIMEOUT_MS = 2 ** 31 - 1;
