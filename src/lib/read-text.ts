/** Reads a body as UTF-8 text. Throws as soon as it is longer than `bytesMax`, and whatever the body's connection throws. */
export async function readText(body: AsyncIterable<Uint8Array>, bytesMax: number): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of body) {
    bytes += piece.length;
    if (bytes > bytesMax) throw new Error(`the answer is longer than ${bytesMax} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}
