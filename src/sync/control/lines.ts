const NEWLINE = 0x0a;

/**
 * Splits a stream of bytes into lines, without their ends; the last one may lack its end. Joins bytes before decoding
 * them, so that no character is split. Throws a RangeError for a line that is too long.
 */
export async function* linesOf(stream: AsyncIterable<Buffer>, bytesMax: number): AsyncGenerator<string> {
  let pieces: Buffer[] = [];
  let length = 0;
  const add = (piece: Buffer): void => {
    pieces.push(piece);
    length += piece.length;
    if (length > bytesMax) throw new RangeError(`a line is longer than ${bytesMax} bytes`);
  };
  const take = (): string => {
    const line = Buffer.concat(pieces, length).toString("utf8");
    pieces = [];
    length = 0;
    return line;
  };
  for await (const bytes of stream) {
    let from = 0;
    for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, from)) {
      add(bytes.subarray(from, end));
      yield take();
      from = end + 1;
    }
    if (from < bytes.length) add(bytes.subarray(from));
  }
  if (length > 0) yield take();
}
