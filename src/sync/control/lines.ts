/** Cuts a stream of bytes into lines, and tells when one grows too long. */
export interface LineSplitter {
  /** The lines that these bytes complete, without their ends; undefined: the line is longer than allowed. */
  push(bytes: Buffer): readonly string[] | undefined;
}

/** A splitter with nothing in it. Bytes are put together before they are decoded, so that no character is cut. */
export function openLineSplitter(bytesMax: number): LineSplitter {
  let pieces: Buffer[] = [];
  let length = 0;
  return {
    push: (bytes) => {
      const lines: string[] = [];
      let rest = bytes;
      for (let end = rest.indexOf(0x0a); end !== -1; end = rest.indexOf(0x0a)) {
        if (length + end > bytesMax) return undefined;
        lines.push(Buffer.concat([...pieces, rest.subarray(0, end)]).toString("utf8"));
        pieces = [];
        length = 0;
        rest = rest.subarray(end + 1);
      }
      if (rest.length > 0) pieces.push(rest);
      length += rest.length;
      return length > bytesMax ? undefined : lines;
    },
  };
}
