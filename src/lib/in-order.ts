/** How much work may be under way at once. */
export interface OrderedBounds<T> {
  readonly width: number;
  /** What a piece weighs, in any unit, and how much all may weigh; one piece is taken however heavy. */
  readonly weigh: (piece: T) => number;
  readonly weightMax: number;
}

/**
 * Does work on each piece, several at once, and gives the results in the order of the pieces, each as soon as it and
 * those before it are there. Reads on only while there is room and somebody asks for results: whoever does not read
 * them holds the source back. `work` must not reject. What the source throws is thrown after the results of all pieces
 * that came before it.
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
  let isOver = false;
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
    while (!isOver || open.length > 0) {
      const [oldest] = open;
      const hasRoom = open.length < width && (weight < weightMax || open.length === 0);
      if (!isOver && hasRoom) {
        reading ??= readOn();
        const read = await Promise.race([reading, oldest?.result.then(() => undefined) ?? reading]);
        if (read !== undefined) {
          reading = undefined;
          if (read.done === true) isOver = true;
          else {
            // Before the work, which may give the piece's memory away.
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
    // Whoever stops asking must not leave the source open. A read that hangs would hold this up for ever.
    void source.return?.().catch(() => undefined);
  }
}
