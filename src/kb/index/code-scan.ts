/**
 * Counts the bits in which many codes differ from one: the part of a search by vector that looks at every chunk. It runs
 * as WebAssembly, whose instruction for 16 bytes at once makes it some six times as fast as the same loop in
 * JavaScript. The module is so small that it is put together here, instruction by instruction, rather than built by a tool.
 */

/** Bytes that one instruction takes: codes are padded to a multiple. */
export const LANE_BYTES = 16;

/** Codes are copied into the module's memory so many bytes at a time, which stay in the processor's cache. */
const BLOCK_BYTES = 128 * 1024;
const PAGE_BYTES = 64 * 1024;
/** Where what lies in the memory: the code asked for, the distances found, the codes. */
const ASKED_AT = 0;
const DISTANCES_AT = PAGE_BYTES;
const CODES_AT = DISTANCES_AT + PAGE_BYTES;

/**
 * Writes, for each of the first `count` codes, the number of bits in which it differs from `asked` into `distances`.
 * `asked` and each code have the same length, a multiple of LANE_BYTES below 8 KB, for a distance holds up to 65,535;
 * the codes lie one after the other.
 */
export function scanCodes(codes: Uint8Array, count: number, asked: Uint8Array, distances: Uint16Array): void {
  memory.set(asked, ASKED_AT);
  const size = asked.length;
  const blockMax = Math.floor(BLOCK_BYTES / size);
  for (let from = 0; from < count; from += blockMax) {
    const block = Math.min(blockMax, count - from);
    memory.set(codes.subarray(from * size, (from + block) * size), CODES_AT);
    scan(CODES_AT, block, size / LANE_BYTES, DISTANCES_AT);
    distances.set(found.subarray(0, block), from);
  }
}

// From here on: the module. https://webassembly.github.io/spec/core/binary/ tells the numbers.

const I32 = 0x7f;
const V128 = 0x7b;
const NO_RESULT = 0x40;
const LOOP = [0x03, NO_RESULT];
const END = 0x0b;
/** Jumps back to the start of the loop around while the top of the stack is not 0. */
const AGAIN_IF = [0x0d, 0];
const ADD = 0x6a;
const SUBTRACT = 0x6b;
/** Loads and stores carry an alignment (none is promised) and an offset. */
const UNALIGNED = [0, 0];
const STORE_16_BITS = [0x3b, ...UNALIGNED];
const LOAD_16_BYTES = [0xfd, 0x00, ...UNALIGNED];
const ZEROS = [0xfd, 0x0c, ...Array.from({ length: LANE_BYTES }, () => 0)];
const XOR = [0xfd, 0x51];
const COUNT_BITS_OF_BYTES = [0xfd, 0x62];
const SUM_PAIRS_OF_BYTES = [0xfd, 0x7d];
const SUM_PAIRS_OF_16_BITS = [0xfd, 0x7f];
const ADD_16_BITS = [0xfd, 0x8e, 0x01];
const get = (local: number): number[] => [0x20, local];
const set = (local: number): number[] => [0x21, local];
const tee = (local: number): number[] => [0x22, local];
const constant = (value: number): number[] => [0x41, value];
const numberAt = (lane: number): number[] => [0xfd, 0x1b, lane];
const advance = (local: number, by: number): number[] => [...get(local), ...constant(by), ADD, ...set(local)];
const countDown = (local: number): number[] => [...get(local), ...constant(1), SUBTRACT, ...tee(local)];

/** The parameters, then the variables. */
const [CODE, COUNT, LANES, OUT, LANES_LEFT, ASKED, SUMS] = [0, 1, 2, 3, 4, 5, 6] as const;

/** One instruction or a few that belong together in each line. */
const BODY: readonly number[] = [
  // Two variables of 32 bits, one of 16 bytes.
  [2, 2, I32, 1, V128],
  LOOP,
  [...ZEROS, ...set(SUMS)],
  [...constant(ASKED_AT), ...set(ASKED)],
  [...get(LANES), ...set(LANES_LEFT)],
  LOOP,
  get(SUMS),
  [...get(CODE), ...LOAD_16_BYTES],
  [...get(ASKED), ...LOAD_16_BYTES],
  [...XOR, ...COUNT_BITS_OF_BYTES, ...SUM_PAIRS_OF_BYTES, ...ADD_16_BITS],
  set(SUMS),
  advance(CODE, LANE_BYTES),
  advance(ASKED, LANE_BYTES),
  [...countDown(LANES_LEFT), ...AGAIN_IF],
  [END],
  get(OUT),
  [...get(SUMS), ...SUM_PAIRS_OF_16_BITS, ...set(SUMS)],
  [...get(SUMS), ...numberAt(0), ...get(SUMS), ...numberAt(1), ADD],
  [...get(SUMS), ...numberAt(2), ADD, ...get(SUMS), ...numberAt(3), ADD],
  STORE_16_BITS,
  advance(OUT, 2),
  [...countDown(COUNT), ...AGAIN_IF],
  [END, END],
].flat();

/** A number as the format writes it: seven bits a byte, the lowest first. */
function leb128(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...leb128(value >>> 7)];
}

function section(id: number, content: readonly number[]): number[] {
  return [id, ...leb128(content.length), ...content];
}

function name(text: string): number[] {
  return [text.length, ...Buffer.from(text)];
}

/** "\0asm", version 1. */
const MAGIC = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
const PAGES = Math.ceil((CODES_AT + BLOCK_BYTES) / PAGE_BYTES);
const MODULE = Uint8Array.of(
  ...MAGIC,
  // Types: one function of four numbers, without a result.
  ...section(1, [1, 0x60, 4, I32, I32, I32, I32, 0]),
  ...section(3, [1, 0]),
  ...section(5, [1, 0, PAGES]),
  // Exports: the function, the memory.
  ...section(7, [2, ...name("scan"), 0, 0, ...name("memory"), 2, 0]),
  ...section(10, [1, ...leb128(BODY.length), ...BODY]),
);

/** What is used of it; its types come with those of browsers alone. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: Readonly<Record<string, unknown>> };
};

const { exports } = new WebAssembly.Instance(new WebAssembly.Module(MODULE));
// What the module above exports.
const scan = exports["scan"] as (codes: number, count: number, lanes: number, out: number) => void;
const memory = new Uint8Array((exports["memory"] as { readonly buffer: ArrayBuffer }).buffer);
const found = new Uint16Array(memory.buffer, DISTANCES_AT, PAGE_BYTES / 2);
