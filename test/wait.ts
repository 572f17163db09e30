/** For `vi.waitFor`, whose default of a second a busy machine exceeds. Shorter than the time of a unit test, so that the condition is named. */
export const WAIT = { timeout: 15_000, interval: 20 };
