import { finished, type Readable } from "node:stream";

/**
 * Collects pieces of bytes in one block of memory. Storing the pieces themselves costs hundreds of bytes each, and the
 * sender of a body chooses their length: 1 MB in pieces of one byte would take some 300 MB.
 */
export interface ByteBlock {
  /** Appends a copy of a piece. Drops everything once the limit is exceeded. */
  add(piece: Uint8Array): void;
  /** Bytes added since the last `take`, dropped ones included. */
  addedBytes(): number;
  /** Returns and clears the bytes added so far; undefined if they exceeded the limit. */
  take(): Buffer<ArrayBuffer> | undefined;
}

/** Initial size of a block. An announced length allocates nothing beyond this before the bytes arrive. */
const FIRST_BYTES = 64 * 1024;

/** Opens an empty block. `expectedBytes` is the announced length; 0 if unknown. */
export function openByteBlock(bytesMax: number, expectedBytes = 0): ByteBlock {
  let block = Buffer.alloc(0);
  let length = 0;
  return {
    add: (piece) => {
      const end = length + piece.length;
      if (end > bytesMax) block = Buffer.alloc(0);
      else {
        if (end > block.length) {
          // Doubling copies each byte twice on average, however short the pieces are.
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
 * Reads a stream into one block. Resolves with undefined as soon as more than `bytesMax` bytes arrive. `expectedBytes`: as
 * for `openByteBlock`. `onBytes` receives the length of each piece before it is stored. Rejects with what `onBytes`
 * throws, and with the stream's error, a premature end included. Discards the unread rest in each case.
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
  // Events, not an iterator: with pieces of one byte an iterator is several times slower.
  stream.on("data", onData);
  return promise;
}
