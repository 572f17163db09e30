/**
 * Flags of Node.js for programs that tests start by the hundred: fewer collections of garbage at a start, which takes an eighth
 * less processor time.
 */
export const NODE_FLAGS: readonly string[] = ["--min-semi-space-size=8"];
