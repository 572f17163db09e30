import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { count } from "../view/format.ts";
import { piecesOf, type ChunkRange } from "./spans.ts";

/** A text with the boundaries of its chunks and what two chunks share. Shows a long text in parts of `shownChars`. */
export function ChunkedText({
  content,
  chunks,
  shownChars,
  wanted = -1,
}: {
  readonly content: string;
  readonly chunks: readonly ChunkRange[];
  readonly shownChars: number;
  /** Number of the chunk to show first, from 0. */
  readonly wanted?: number;
}): JSX.Element {
  const target = chunks[wanted];
  const [until, setUntil] = useState(Math.max(shownChars, (target?.end ?? 0) + 1000));
  useEffect(() => {
    if (target !== undefined) document.getElementById(`chunk-${wanted}`)?.scrollIntoView({ block: "center" });
  }, []);
  return (
    <>
      <p class="hint legend">
        <span class="chunk-number">1</span> begins a chunk. <span class="overlap">Shaded text</span> is in two
        chunks.
      </p>
      <div class="document-text">
        {piecesOf(chunks, content.length, until).map((piece) => (
          <span
            key={piece.start}
            class={`${piece.chunks.length > 1 ? "overlap" : ""} ${piece.chunks.includes(wanted) ? "wanted" : ""}`}
          >
            {piece.begins.map((number) => (
              <span class="chunk-number" id={`chunk-${number}`} key={number}>
                <span class="hidden-visually">Chunk </span>
                {number + 1}
              </span>
            ))}
            {content.slice(piece.start, piece.end)}
          </span>
        ))}
      </div>
      {until < content.length ? (
        <button type="button" class="button" onClick={() => setUntil(until + shownChars)}>
          Show more: {count(content.length - until)} characters are left
        </button>
      ) : null}
    </>
  );
}
