import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** Pieces of the tokenizer with their log-probabilities; `▁` begins a word, as in SentencePiece. */
const PIECES: readonly (readonly [piece: string, score: number])[] = [
  ["<s>", 0],
  ["<pad>", 0],
  ["</s>", 0],
  ["<unk>", 0],
  ["▁", -3],
  ["▁Haus", -5],
  ["▁Haustür", -12],
  ["tür", -6],
  ["en", -4],
  ["▁der", -3],
  ["▁мир", -5],
  ["query", -7],
  ["passage", -7],
  [":", -3],
  ...Array.from("abcdefghijklmnopqrstuvwxyzäöüßDEHпривет世界", (letter): [string, number] => [letter, -10]),
];

/**
 * Writes a model of the architecture of multilingual sentence models into a folder: a Unigram tokenizer with the special tokens of
 * XLM-R, and a network that gives each token a vector of its own, whatever is around it. A few kilobytes; its weights are made
 * up.
 */
export async function writeTinyModel(folder: string, dimensions = 384): Promise<void> {
  const special = ["<s>", "<pad>", "</s>", "<unk>"].map((content, id) => ({ id, content, special: true }));
  const tokenizer = {
    version: "1.0",
    added_tokens: special,
    normalizer: { type: "NFKC" },
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: [
        { type: "WhitespaceSplit" },
        { type: "Metaspace", replacement: "▁", prepend_scheme: "always", split: true },
      ],
    },
    post_processor: {
      type: "TemplateProcessing",
      single: [
        { SpecialToken: { id: "<s>", type_id: 0 } },
        { Sequence: { id: "A", type_id: 0 } },
        { SpecialToken: { id: "</s>", type_id: 0 } },
      ],
      pair: [],
      special_tokens: {
        "<s>": { id: "<s>", ids: [0], tokens: ["<s>"] },
        "</s>": { id: "</s>", ids: [2], tokens: ["</s>"] },
      },
    },
    decoder: { type: "Metaspace", replacement: "▁", prepend_scheme: "always" },
    model: { type: "Unigram", unk_id: 3, vocab: PIECES },
  };
  const names = { bos_token: "<s>", eos_token: "</s>", unk_token: "<unk>", pad_token: "<pad>" };
  const files: Readonly<Record<string, string | Uint8Array>> = {
    "config.json": JSON.stringify({ hidden_size: dimensions, max_position_embeddings: 512 }),
    "tokenizer.json": JSON.stringify(tokenizer),
    "tokenizer_config.json": JSON.stringify({ tokenizer_class: "XLMRobertaTokenizer", ...names }),
    "onnx/model_quantized.onnx": lookupNetwork(PIECES.length, dimensions),
  };
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
}

/** An ONNX graph of one `Gather` from a table of made-up vectors. Field numbers are those of onnx.proto. */
function lookupNetwork(rows: number, dimensions: number): Uint8Array {
  let seed = 1;
  const table = Float32Array.from({ length: rows * dimensions }, () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) | 0; // Numerical Recipes
    return seed / 2 ** 31;
  });
  const inputs = ["input_ids", "attention_mask", "token_type_ids"];
  const weights = [...ints(1, [rows, dimensions]), ...int(2, 1), ...text(8, "table")];
  const graph = [
    ...message(1, [
      ...text(1, "table"),
      ...text(1, "input_ids"),
      ...text(2, "last_hidden_state"),
      ...text(4, "Gather"),
    ]),
    ...text(2, "tiny"),
    ...message(5, [...weights, ...message(9, [...new Uint8Array(table.buffer)])]),
    ...inputs.flatMap((name) => message(11, value(name, INT64, ["batch", "sequence"]))),
    ...message(12, value("last_hidden_state", FLOAT, ["batch", "sequence", dimensions])),
  ];
  return Uint8Array.from([...int(1, 8), ...message(7, graph), ...message(8, int(2, 13))]);
}

const FLOAT = 1;
const INT64 = 7;

function value(name: string, type: number, shape: readonly (string | number)[]): number[] {
  const dims = shape.flatMap((dim) => message(1, typeof dim === "number" ? int(1, dim) : text(2, dim)));
  return [...text(1, name), ...message(2, message(1, [...int(1, type), ...message(2, dims)]))];
}

/** Protocol Buffers: a number, several, a message, a string. */
function int(field: number, number: number): number[] {
  return [...varint(field << 3), ...varint(number)];
}
function ints(field: number, numbers: readonly number[]): number[] {
  return numbers.flatMap((number) => int(field, number));
}
function message(field: number, content: readonly number[]): number[] {
  // `concat` takes any length; spreading would exhaust the stack.
  return [...varint((field << 3) | 2), ...varint(content.length)].concat(content);
}
function text(field: number, content: string): number[] {
  return message(field, [...Buffer.from(content)]);
}
function varint(number: number): number[] {
  return number < 128 ? [number] : [(number & 127) | 128, ...varint(number >>> 7)];
}
