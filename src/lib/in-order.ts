/** Limits of the work in flight. */
export interface OrderedBounds<T> {
  readonly width: number;
  /** Weight of an item in any unit, and the limit of their sum. A single item may exceed it. */
  readonly weigh: (piece: T) => number;
  readonly weightMax: number;
}

/**
 * Works on items concurrently and yields the results in the order of the items, each as soon as it and its predecessors
 * are done. Reads the source only within the limits and while the consumer asks for results: a slow consumer applies
 * backpressure. `work` must not reject. Throws the source's error after the results of all items before it.
 */
export async function* inOrder<T, R>(
  pieces: AsyncIterable<T>,
  { width, weigh, weightMax }: OrderedBounds<T>,
  work: (piece: T) => Promise<R>,
): AsyncGenerator<R> {
  const source = pieces[Symbol.asyncIterator]();
  const open: { readonly result: Promise<R>; readonly weight: number }[] = [];
  let weight = 0;
  let reading: Promise<IteratorResult<T, undefined>> | undefined;
  let isDone = false;
  let broken: { readonly error: unknown } | undefined;
  const readOn = async (): Promise<IteratorResult<T, undefined>> => {
    try {
      const { done = false, value } = await source.next();
      return done ? { done: true, value: undefined } : { done: false, value };
    } catch (error) {
      broken = { error };
      return { done: true, value: undefined };
    }
  };
  try {
    while (!isDone || open.length > 0) {
      const [oldest] = open;
      const hasRoom = open.length < width && (weight < weightMax || open.length === 0);
      if (!isDone && hasRoom) {
        reading ??= readOn();
        const read = await Promise.race([reading, oldest?.result.then(() => undefined) ?? reading]);
        if (read !== undefined) {
          reading = undefined;
          if (read.done === true) isDone = true;
          else {
            // Weighed before the work, which may transfer the item's memory.
            const pieceWeight = weigh(read.value);
            weight += pieceWeight;
            open.push({ result: work(read.value), weight: pieceWeight });
          }
          continue;
        }
      }
      open.shift();
      weight -= oldest?.weight ?? 0;
      if (oldest !== undefined) yield await oldest.result;
    }
    if (broken !== undefined) throw broken.error;
  } finally {
    // Closes the source when the consumer stops early. Not awaited: a read that hangs would block this for ever.
    void source.return?.().catch(() => undefined);
  }
}
