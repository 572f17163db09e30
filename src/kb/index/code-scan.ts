/**
 * Computes Hamming distances between one code and many: the part of a vector search that reads every chunk. Runs as
 * WebAssembly, whose 16-byte SIMD instructions make it about six times as fast as the same loop in JavaScript. The module
 * is small enough to assemble here, instruction by instruction, without a build tool.
 */

/** Bytes per SIMD instruction. Codes are padded to a multiple. */
export const LANE_BYTES = 16;

/** Size of the blocks of codes copied into the module's memory, small enough for the CPU cache. */
const BLOCK_BYTES = 128 * 1024;
const PAGE_BYTES = 64 * 1024;
/** Memory layout: the query's code, the distances, the codes. */
const QUERY_AT = 0;
const DISTANCES_AT = PAGE_BYTES;
const CODES_AT = DISTANCES_AT + PAGE_BYTES;

/**
 * Writes the Hamming distance between `query` and each of the first `count` codes into `distances`. `query` and each code
 * have the same length, a multiple of LANE_BYTES below 8 KB, because a distance is at most 65,535. `codes` holds them
 * contiguously.
 */
export function scanCodes(codes: Uint8Array, count: number, query: Uint8Array, distances: Uint16Array): void {
  memory.set(query, QUERY_AT);
  const size = query.length;
  const blockMax = Math.floor(BLOCK_BYTES / size);
  for (let from = 0; from < count; from += blockMax) {
    const block = Math.min(blockMax, count - from);
    memory.set(codes.subarray(from * size, (from + block) * size), CODES_AT);
    scan(CODES_AT, block, size / LANE_BYTES, DISTANCES_AT);
    distances.set(found.subarray(0, block), from);
  }
}

// From here on: the module. Opcodes: https://webassembly.github.io/spec/core/binary/

const I32 = 0x7f;
const V128 = 0x7b;
const NO_RESULT = 0x40;
const LOOP = [0x03, NO_RESULT];
const END = 0x0b;
/** Jumps back to the start of the enclosing loop while the top of the stack is not 0. */
const AGAIN_IF = [0x0d, 0];
const ADD = 0x6a;
const SUBTRACT = 0x6b;
/** Loads and stores carry an alignment (none guaranteed) and an offset. */
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

/** Parameters, then local variables. */
const [CODE, COUNT, LANES, OUT, LANES_LEFT, QUERY, SUMS] = [0, 1, 2, 3, 4, 5, 6] as const;

/** One instruction, or a few that belong together, per line. */
const BODY: readonly number[] = [
  // Two variables of 32 bits, one of 16 bytes.
  [2, 2, I32, 1, V128],
  LOOP,
  [...ZEROS, ...set(SUMS)],
  [...constant(QUERY_AT), ...set(QUERY)],
  [...get(LANES), ...set(LANES_LEFT)],
  LOOP,
  get(SUMS),
  [...get(CODE), ...LOAD_16_BYTES],
  [...get(QUERY), ...LOAD_16_BYTES],
  [...XOR, ...COUNT_BITS_OF_BYTES, ...SUM_PAIRS_OF_BYTES, ...ADD_16_BITS],
  set(SUMS),
  advance(CODE, LANE_BYTES),
  advance(QUERY, LANE_BYTES),
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

/** Encodes an unsigned number as LEB128: seven bits a byte, lowest first. */
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

/** The part of WebAssembly used here; TypeScript declares it in the browser's types only. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: Readonly<Record<string, unknown>> };
};

const { exports } = new WebAssembly.Instance(new WebAssembly.Module(MODULE));
// The module above exports a function and a memory.
const scan = exports["scan"] as (codes: number, count: number, lanes: number, out: number) => void;
const memory = new Uint8Array((exports["memory"] as { readonly buffer: ArrayBuffer }).buffer);
const found = new Uint16Array(memory.buffer, DISTANCES_AT, PAGE_BYTES / 2);
