/** Settles as the promise does, or rejects with the error of `late` after `ms`. The work itself is not cancelled. */
export async function within<T>(promise: Promise<T>, ms: number, late: () => Error): Promise<T> {
  const deadline = Promise.withResolvers<never>();
  const timer = setTimeout(() => deadline.reject(late()), ms);
  try {
    return await Promise.race([promise, deadline.promise]);
  } finally {
    clearTimeout(timer);
  }
}
