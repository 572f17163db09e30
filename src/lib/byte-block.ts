import { finished, type Readable } from "node:stream";

/**
 * Bytes that come in pieces, copied into one block of memory. Pieces that are kept as they come cost hundreds of bytes
 * each, and whoever sends a body decides how long they are: of 1 MB in pieces of one byte some 300 MB would be held.
 */
export interface ByteBlock {
  /** Copies a piece behind what is there. Once there is more than the most, nothing is kept. */
  add(piece: Uint8Array): void;
  /** Bytes added since the last `take`, kept or not. */
  addedBytes(): number;
  /** What was added; undefined where it was too much. The next piece begins another block. */
  take(): Buffer<ArrayBuffer> | undefined;
}

/** The first size of a block: what was announced may never come, and nobody gets memory for an announcement. */
const FIRST_BYTES = 64 * 1024;

/** `expectedBytes`: how much will come, where that is known; 0: it is not, and the first piece may be all. */
export function openByteBlock(bytesMax: number, expectedBytes = 0): ByteBlock {
  let block = Buffer.alloc(0);
  let length = 0;
  return {
    add: (piece) => {
      const end = length + piece.length;
      if (end > bytesMax) block = Buffer.alloc(0);
      else {
        if (end > block.length) {
          // Doubled, so that each byte is copied twice on average, however short the pieces are.
          const doubled = block.length === 0 ? FIRST_BYTES : block.length * 2;
          const size = Math.max(
            end,
            Math.min(expectedBytes === 0 ? block.length * 2 : expectedBytes, doubled),
          );
          const grown = Buffer.allocUnsafe(Math.min(bytesMax, size));
          grown.set(block.subarray(0, length));
          block = grown;
        }
        block.set(piece, length);
      }
      length = end;
    },
    addedBytes: () => length,
    take: () => {
      const taken = length > bytesMax ? undefined : block.subarray(0, length);
      block = Buffer.alloc(0);
      length = 0;
      return taken;
    },
  };
}

/**
 * Reads a stream into one block. Resolves with undefined as soon as more than `bytesMax` came; the rest is let through
 * unread. `expectedBytes`: as for `openByteBlock`. `onBytes` is called with the length of each piece before it is kept.
 * Rejects with what it throws, and with what the stream fails with, also where it ended early; the rest is let through
 * unread then.
 */
export function bytesOf(
  stream: Readable,
  bytesMax: number,
  expectedBytes?: number,
  onBytes: (bytes: number) => void = () => undefined,
): Promise<Buffer<ArrayBuffer> | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer<ArrayBuffer> | undefined>();
  const block = openByteBlock(bytesMax, expectedBytes);
  const onData = (piece: Uint8Array): void => {
    try {
      onBytes(piece.length);
    } catch (error) {
      stop();
      stream.resume();
      reject(error);
      return;
    }
    block.add(piece);
    if (block.addedBytes() <= bytesMax) return;
    stop();
    stream.resume();
    resolve(undefined);
  };
  const forget = finished(stream, { writable: false }, (error) => {
    stop();
    if (error) reject(error);
    else resolve(block.take());
  });
  const stop = (): void => {
    forget();
    stream.off("data", onData);
  };
  // An event for each piece, not an iterator: with pieces of one byte that is several times as slow.
  stream.on("data", onData);
  return promise;
}
