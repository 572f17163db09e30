/** The pixels of a Windows bitmap: red, green and blue, a byte each, row by row from the top. */
export interface BitmapPixels {
  readonly width: number;
  readonly height: number;
  readonly data: Buffer;
}

/** The contents of the two headers of a bitmap. */
export interface BitmapHeader {
  readonly width: number;
  readonly height: number;
  /** Rows are stored from the top. The usual order is from the bottom. */
  readonly topDown: boolean;
  readonly bits: number;
  readonly compression: number;
  /** Where the second header ends: the palette follows. */
  readonly end: number;
  /** Where the pixels start. */
  readonly start: number;
  readonly colours: number;
}

/** Length of the file header, which the second header follows. */
const FILE_HEADER_BYTES = 14;
/** Length of the second header in files of OS/2, whose fields are shorter. */
const OS2_HEADER_BYTES = 12;
/** Offset of the colour masks: behind a header of 40 bytes, or within a longer one. */
const MASKS_AT = 54;

const PLAIN = 0;
const RUNS_OF_BYTES = 1;
const RUNS_OF_NIBBLES = 2;
const MASKED: ReadonlySet<number> = new Set([3, 6]);
/** Five bits for each of red, green and blue. */
const MASKS_16_BITS = [0x7c_00, 0x03_e0, 0x00_1f];

/** Reads the headers. Throws a RangeError if they are cut off. */
export function readBitmapHeader(bytes: Buffer): BitmapHeader {
  const start = bytes.readUInt32LE(10);
  const headerBytes = bytes.readUInt32LE(FILE_HEADER_BYTES);
  const end = FILE_HEADER_BYTES + headerBytes;
  if (headerBytes === OS2_HEADER_BYTES) {
    const [width, height, bits] = [bytes.readUInt16LE(18), bytes.readUInt16LE(20), bytes.readUInt16LE(24)];
    return { width, height, topDown: false, bits, compression: PLAIN, end, start, colours: 0 };
  }
  const height = bytes.readInt32LE(22);
  return {
    width: Math.abs(bytes.readInt32LE(18)),
    height: Math.abs(height),
    topDown: height < 0,
    bits: bytes.readUInt16LE(28),
    compression: bytes.readUInt32LE(30),
    end,
    start,
    colours: bytes.readUInt32LE(46),
  };
}

/**
 * Decodes a bitmap, which sharp cannot: 1, 4, 8, 16, 24 or 32 bits a pixel, plain, run-length encoded or with colour masks.
 * Draws on white where a mask declares transparency. Throws for anything else, and if pixels are missing. Check the size before the call.
 */
export function decodeBitmap(bytes: Buffer, header: BitmapHeader): BitmapPixels {
  const { width, height, bits } = header;
  if (![1, 4, 8, 16, 24, 32].includes(bits)) throw new Error(`${bits} bits a pixel`);
  const data = Buffer.alloc(width * height * 3);
  const colourAt = bits <= 8 ? paletteReader(bytes, header) : maskReader(bytes, header);
  for (let y = 0; y < height; y++) {
    const row = header.topDown ? y : height - 1 - y;
    for (let x = 0; x < width; x++) data.writeUIntBE(colourAt(x, row), (y * width + x) * 3, 3);
  }
  return { width, height, data };
}

/** Returns the colour of a pixel as 0xRRGGBB; rows are counted in the order of the file. */
type ColourReader = (x: number, row: number) => number;

function paletteReader(bytes: Buffer, header: BitmapHeader): ColourReader {
  const { width, height, bits, compression, end, start } = header;
  const entryBytes = end === FILE_HEADER_BYTES + OS2_HEADER_BYTES ? 3 : 4;
  const count = Math.min(header.colours === 0 ? 2 ** bits : header.colours, 2 ** bits);
  const palette = Array.from({ length: count }, (_, index) => bytes.readUIntLE(end + index * entryBytes, 3));
  const colourOf = (index: number): number => palette[index] ?? 0;
  if (compression === RUNS_OF_BYTES || compression === RUNS_OF_NIBBLES) {
    const indexes = expandRuns(bytes.subarray(start), width, height, compression === RUNS_OF_NIBBLES);
    return (x, row) => colourOf(indexes[row * width + x] ?? 0);
  }
  if (compression !== PLAIN) throw new Error(`compression ${compression}`);
  const stride = strideOf(width, bits);
  return (x, row) => {
    const at = x * bits;
    const byte = bytes.readUInt8(start + row * stride + (at >> 3));
    return colourOf((byte >> (8 - bits - (at & 7))) & (2 ** bits - 1));
  };
}

function maskReader(bytes: Buffer, header: BitmapHeader): ColourReader {
  const { width, bits, compression, start } = header;
  const stride = strideOf(width, bits);
  const pixelBytes = bits / 8;
  const read = (x: number, row: number): number =>
    bytes.readUIntLE(start + row * stride + x * pixelBytes, pixelBytes);
  if (compression === PLAIN && bits >= 24) return (x, row) => read(x, row) & 0xff_ff_ff;
  if (compression !== PLAIN && !MASKED.has(compression)) throw new Error(`compression ${compression}`);
  const [red, green, blue, alpha] = masksOf(bytes, header).map(channelReader);
  return (x, row) => {
    const pixel = read(x, row);
    const opacity = (alpha?.(pixel) ?? 255) / 255;
    const onWhite = (value = 0): number => Math.round(255 + (value - 255) * opacity);
    return (onWhite(red?.(pixel)) << 16) | (onWhite(green?.(pixel)) << 8) | onWhite(blue?.(pixel));
  };
}

/** Returns the masks of red, green and blue, and of opacity if there is one. */
function masksOf(bytes: Buffer, { compression, end }: BitmapHeader): readonly number[] {
  if (compression === PLAIN) return MASKS_16_BITS;
  const colours = [0, 4, 8].map((at) => bytes.readUInt32LE(MASKS_AT + at));
  const alpha = end >= MASKS_AT + 16 ? bytes.readUInt32LE(MASKS_AT + 12) : 0;
  return alpha === 0 ? colours : [...colours, alpha];
}

/** Returns a function that scales the bits under a mask to 0…255. */
function channelReader(mask: number): (pixel: number) => number {
  const shift = mask === 0 ? 0 : 31 - Math.clz32(mask & -mask);
  const max = Math.max(1, mask >>> shift);
  return (pixel) => Math.round((((pixel & mask) >>> shift) * 255) / max);
}

/** Rows fill up to a multiple of four bytes. */
function strideOf(width: number, bits: number): number {
  return Math.ceil((width * bits) / 32) * 4;
}

/** Expands run-length encoded pixels to a palette index each. What the runs skip has index 0. */
function expandRuns(bytes: Buffer, width: number, height: number, nibbles: boolean): Uint8Array {
  const indexes = new Uint8Array(width * height);
  let [x, row, at] = [0, 0, 0];
  const put = (index: number): void => {
    if (x < width && row < height) indexes[row * width + x] = index;
    x++;
  };
  const nibbleOf = (byte: number, n: number): number => (n % 2 === 0 ? byte >> 4 : byte & 15);
  while (row < height) {
    const count = bytes.readUInt8(at++);
    const value = bytes.readUInt8(at++);
    if (count > 0) {
      for (let n = 0; n < count; n++) put(nibbles ? nibbleOf(value, n) : value);
    } else if (value === 0) {
      [x, row] = [0, row + 1];
    } else if (value === 1) {
      break;
    } else if (value === 2) {
      x += bytes.readUInt8(at++);
      row += bytes.readUInt8(at++);
    } else {
      const literals = nibbles ? Math.ceil(value / 2) : value;
      for (let n = 0; n < value; n++) {
        const byte = bytes.readUInt8(at + (nibbles ? n >> 1 : n));
        put(nibbles ? nibbleOf(byte, n) : byte);
      }
      // Literal pixels fill up to a multiple of two bytes.
      at += literals + (literals % 2);
    }
  }
  return indexes;
}
