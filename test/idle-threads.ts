import { afterAll, beforeAll } from "vitest";
import { keepIdleThreads } from "../src/lib/idle-threads.ts";

/** Stores and daemons that a test opens side by side. */
const KEPT = 4;

/** A set-up file: the tests of a process take each other's threads of closed stores and watchers. */
await keepIdleThreads(KEPT);

/** Has the tests of a file or `describe` start threads of their own, which they count or kill. */
export function startOwnThreads(): void {
  beforeAll(() => keepIdleThreads(0));
  afterAll(() => keepIdleThreads(KEPT));
}
