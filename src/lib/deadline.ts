/** Resolves as the promise does, and rejects with what `late` makes when that takes longer than `ms`; the work goes on. */
export async function within<T>(promise: Promise<T>, ms: number, late: () => Error): Promise<T> {
  const deadline = Promise.withResolvers<never>();
  const timer = setTimeout(() => deadline.reject(late()), ms);
  try {
    return await Promise.race([promise, deadline.promise]);
  } finally {
    clearTimeout(timer);
  }
}
