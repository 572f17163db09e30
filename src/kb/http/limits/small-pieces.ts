import type { IncomingMessage, ServerResponse } from "node:http";

/** Pieces of any size that a body may have. */
const PIECES_FREE = 1000;
/** Least mean size of further pieces, in bytes. */
const PIECE_BYTES_MIN = 64;

/**
 * Closes the connection of a client whose chunked body comes in thousands of tiny pieces, and calls `onRefused`. Each piece
 * costs the event loop 2 µs, so that 64 KB of single bytes would block it for 20 ms, again and again.
 */
export function limitSmallPieces(
  request: IncomingMessage,
  response: ServerResponse,
  onRefused: (message: string) => void,
): void {
  // Otherwise the pieces are those of the network.
  if (request.headers["transfer-encoding"] === undefined) return;
  const { socket } = request;
  const push = request.push.bind(request);
  let pieces = 0;
  let bytes = 0;
  request.push = (piece: Buffer | null) => {
    // The rest of what had arrived when the connection was closed.
    if (socket.destroyed && piece !== null) return false;
    pieces += 1;
    bytes += piece?.length ?? 0;
    if (pieces > PIECES_FREE + bytes / PIECE_BYTES_MIN) {
      onRefused(`a body came in more than ${PIECES_FREE} pieces of less than ${PIECE_BYTES_MIN} bytes`);
      socket.destroy();
      return false;
    }
    return push(piece);
  };
  // Discards the rest of an answered request through `push`; Node would discard it before, uncounted.
  response.once("prefinish", () => {
    if (!request.complete) request.resume();
  });
}
